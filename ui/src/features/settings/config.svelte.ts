import { type Api, ApiError, asApiError } from '../../lib/http';
import type {
  ChainConfig,
  Config,
  ContextsConfig,
  CostsConfig,
  DownloadsConfig,
  LibraryConfig,
  McpServerChange,
  McpServerConfig,
  McpServerTest,
  MenuBarConfig,
  NotificationsConfig,
  PolicyConfig,
  ScheduleConfig,
  ServerConfig,
  TierConfig,
} from '../../platform/openapi';
import { modelPatch, ownSettings, type TierPatch, undoPatch } from '../tiers/chosen';

/** The changed part of the configuration; `null` removes a tier or chain. */
export type ConfigPatch = Partial<
  Omit<
    Config,
    | 'tiers'
    | 'library'
    | 'downloads'
    | 'policy'
    | 'server'
    | 'chains'
    | 'menu_bar'
    | 'notifications'
    | 'costs'
    | 'schedules'
    | 'mcp'
    | 'contexts'
  >
> & {
  server?: Partial<ServerConfig>;
  chains?: Record<string, Partial<ChainConfig> | null>;
  library?: Partial<LibraryConfig>;
  downloads?: Partial<DownloadsConfig>;
  policy?: Partial<PolicyConfig>;
  contexts?: Partial<ContextsConfig>;
  menu_bar?: Partial<MenuBarConfig>;
  notifications?: Partial<NotificationsConfig>;
  /** `null` removes a figure. */
  costs?: Partial<Record<keyof CostsConfig, number | null>>;
  tiers?: Record<string, TierPatch | null>;
  schedules?: Record<string, ScheduleConfig | null>;
  mcp?: Record<string, Partial<McpServerConfig> | null>;
};

export interface FieldState {
  state: 'saving' | 'saved' | 'refused';
  error: ApiError | null;
  /** The key that the refusal is about, such as `schedules.night.to`. */
  key?: string;
}

const SAVED_SHOWN_MS = 2500;

/** Owns the configuration as this page sees it. A change is sent at once and applies when the host has answered. */
export class ConfigStore {
  config = $state.raw<Config | null>(null);
  /** The path of the configuration file. */
  path = $state('');
  problem = $state.raw<ApiError | null>(null);
  /** The outcome of the last change of each field, by the field's key. */
  fields = $state<Record<string, FieldState | undefined>>({});
  /** How a tier was before it got another model here, which reset settings of it, until another change. */
  replaced = $state.raw<Record<string, TierConfig | undefined>>({});
  #api: Api;

  constructor(api: Api) {
    this.#api = api;
  }

  async load(): Promise<void> {
    try {
      const { config, path } = await this.#api.get('/tierbar/v1/config');
      this.config = config;
      this.path = path;
      this.problem = null;
    } catch (cause) {
      this.problem = asApiError(cause);
    }
  }

  /** Forgets why a value was refused, once another one is typed. */
  retype(field: string): void {
    if (this.fields[field]?.state === 'refused') this.fields[field] = undefined;
  }

  /** Forgets what was refused, once its fields are no longer shown. */
  forgetRefusals(): void {
    for (const field of Object.keys(this.fields)) this.retype(field);
  }

  /** Says at a field what is wrong with what was typed, which is not sent. */
  refuse(field: string, message: string): void {
    this.fields[field] = { state: 'refused', error: new ApiError('bad_request', message) };
  }

  /** Sends a change of one field and records its outcome. Resolves to whether it was saved. */
  async save(field: string, patch: ConfigPatch): Promise<boolean> {
    this.fields[field] = { state: 'saving', error: null };
    try {
      const { config } = await this.#api.patch('/tierbar/v1/config', { body: patch });
      this.config = config;
    } catch (cause) {
      this.fields[field] = refusal(asApiError(cause), patch);
      return false;
    }
    for (const tier of Object.keys(patch.tiers ?? {})) this.#replace(tier, undefined);
    const saved: FieldState = { state: 'saved', error: null };
    this.fields[field] = saved;
    setTimeout(() => {
      if (this.fields[field]?.state === 'saved') this.fields[field] = undefined;
    }, SAVED_SHOWN_MS);
    return true;
  }

  /**
   * Has an MCP server tried out and saved, and records the outcome as that of the field `mcp`. Resolves to what the server has;
   * `null` if nothing was saved.
   */
  async saveMcpServer(
    name: string,
    change: McpServerChange,
    signal: AbortSignal,
  ): Promise<McpServerTest | null> {
    this.fields.mcp = { state: 'saving', error: null };
    try {
      const path = '/tierbar/v1/mcp-servers/{name}';
      const test = await this.#api.put(path, { path: { name }, body: change, signal });
      await this.load();
      this.fields.mcp = undefined;
      return test;
    } catch (cause) {
      const patch = { mcp: { [name]: change.server } };
      this.fields.mcp = signal.aborted ? undefined : refusal(asApiError(cause), patch);
      return null;
    }
  }

  /** Gives a tier this model, without what was set for another one. Resolves to whether it was saved. */
  async chooseModel(tier: string, model: string): Promise<boolean> {
    const before = this.config?.tiers[tier];
    const saved = await this.save(`${tier}.model`, { tiers: { [tier]: modelPatch(model) } });
    if (saved && model !== '' && before && ownSettings(before).length > 0) this.#replace(tier, before);
    return saved;
  }

  /** Gives a tier back the model that it had, and what was set for it. Resolves to whether it was saved. */
  async undoModel(tier: string): Promise<boolean> {
    const before = this.replaced[tier];
    return before !== undefined && this.save(`${tier}.model`, { tiers: { [tier]: undoPatch(before) } });
  }

  #replace(tier: string, before: TierConfig | undefined): void {
    this.replaced = { ...this.replaced, [tier]: before };
  }
}

/** Leaves the key out of a message that stands at the field of that key. */
function refusal(error: ApiError, patch: ConfigPatch): FieldState {
  const key = keysOf(patch)
    .flatMap((changed) => changed.split('.').map((_, at, parts) => parts.slice(0, at + 1).join('.')))
    .find((changed) => error.message.startsWith(`${changed}: `));
  if (key) error.message = error.message.slice(key.length + 2);
  return { state: 'refused', error, key };
}

/** The keys that a change sets, such as `tiers.fast.context`. */
function keysOf(value: unknown, key = ''): string[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [key];
  return Object.entries(value).flatMap(([name, inner]) => keysOf(inner, key ? `${key}.${name}` : name));
}

/** Returns the tiers in their usual order: fast, primary, heavy, then the rest by name. */
export function tierOrder(config: Config): string[] {
  const rank = (id: string) => {
    const at = ['fast', 'primary', 'heavy'].indexOf(id);
    return at < 0 ? 3 : at;
  };
  return Object.keys(config.tiers).sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
}

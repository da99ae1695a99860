import { type Api, type ApiError, asApiError } from '../../lib/http';
import type { AnswerSettings, Preset } from '../../platform/openapi';

export const NO_SETTINGS: AnswerSettings = { instructions: '', sampling: {}, thinking: null };

/** The presets that come with Tierbar. */
const BUILT_IN: Record<string, string> = {
  Brief: /* @wc-context: preset */ 'Brief',
  Proofread: /* @wc-context: preset */ 'Proofread',
};

export function presetName({ name, built_in }: Preset): string {
  return (built_in && BUILT_IN[name]) || name;
}

/** Whether a chat answers as its tier is set. */
export function isUnset({ instructions, sampling, thinking }: AnswerSettings): boolean {
  return instructions === '' && Object.keys(sampling).length === 0 && thinking === null;
}

export function sameSettings(one: AnswerSettings, other: AnswerSettings): boolean {
  return canonical(one) === canonical(other);
}

function canonical({ instructions, sampling, thinking }: AnswerSettings): string {
  const set = Object.entries(sampling).filter(([, value]) => value != null);
  return JSON.stringify([instructions, set.sort(), thinking]);
}

/** Owns the presets as this page sees them. */
export class Presets {
  list = $state.raw<Preset[]>([]);
  problem = $state.raw<ApiError | null>(null);
  #api: Api;

  constructor(api: Api) {
    this.#api = api;
  }

  load(): Promise<boolean> {
    return this.#try(async () => {});
  }

  /** Returns whether it is saved. */
  save(name: string, settings: AnswerSettings): Promise<boolean> {
    return this.#try(() => this.#api.put('/tierbar/v1/presets/{name}', { path: { name }, body: settings }));
  }

  remove(name: string): Promise<boolean> {
    return this.#try(() => this.#api.delete('/tierbar/v1/presets/{name}', { path: { name } }));
  }

  async #try(change: () => Promise<unknown>): Promise<boolean> {
    this.problem = null;
    try {
      await change();
      this.list = (await this.#api.get('/tierbar/v1/presets')).presets;
      return true;
    } catch (cause) {
      this.problem = asApiError(cause);
      return false;
    }
  }
}

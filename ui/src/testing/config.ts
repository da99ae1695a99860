import type { Config, PolicyConfig, TierConfig } from '../platform/openapi';

export const POLICY: PolicyConfig = {
  max_loaded: 'auto',
  patience: '10s',
  home: '',
  quiet_hours: '',
  battery_below: 20,
  defer_to_full_screen: true,
  step_down: true,
  keep_conversations: true,
  conversations_mib: 2048,
};

export const TIER: TierConfig = {
  model: '',
  profile: 'balanced',
  context: 'auto',
  kv_cache: 'auto',
  thinking: false,
  sampling: {},
  paging: 'auto',
  approximate: 'off',
  threads: 0,
  batch: 512,
  lookup: false,
  draft_model: '',
  engine: 'embedded',
  idle_unload: '10m',
  pinned: false,
};

/** A configuration with what is given, and as it is by itself in all else. */
export function configured(given: Partial<Config> = {}): Config {
  return structuredClone({ ...UNCONFIGURED, ...given });
}

const UNCONFIGURED: Config = {
  listen: '127.0.0.1:11435',
  server: {
    network: false,
    tls: false,
    certificate: '',
    key: '',
    names: [],
    require_keys: false,
    act_as_ollama: false,
    requests_at_once: 256,
  },
  log: { prompts: false },
  models_dir: '',
  library: { folders: [], other_apps: true },
  downloads: { rate_limit: 0, at_once: 1 },
  allowed_origins: [],
  notifications: { downloads: false, queue: false, memory: false, unloads: false },
  contexts: { form: 'exact', store: '', endpoint: '', region: '', access_key: '' },
  queue: { at_once: 1, keep: '168h', bytes: '256MiB', webhook_hosts: [] },
  menu_bar: { text: 'none', click: 'menu', shortcut: '' },
  chains: {},
  costs: {},
  policy: POLICY,
  tiers: {},
};

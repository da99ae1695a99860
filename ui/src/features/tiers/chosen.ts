import type { TierConfig } from '../../platform/openapi';

/** A change of a tier; `null` removes a key, so that its default holds. */
export type TierPatch = { [K in keyof TierConfig]?: TierConfig[K] | null };

/** What is set for one model, with its name in the window, and what a new model starts with. Verdicts are for these. */
const OF_A_MODEL = {
  context: { label: 'Context', fresh: 'auto' },
  kv_cache: { label: 'KV cache', fresh: 'auto' },
  gpu_layers: { label: 'Layers on the GPU', fresh: null },
  experts_used: { label: 'Experts per token', fresh: null },
  draft_model: { label: 'Draft model', fresh: '' },
  batch: { label: 'Batch size', fresh: null },
  paging: { label: 'Model larger than memory', fresh: null },
  sampling: { label: 'Sampling', fresh: null },
  thinking: { label: 'Think first', fresh: null },
} as const;

type Key = keyof typeof OF_A_MODEL;
const KEYS = Object.keys(OF_A_MODEL) as Key[];

/** The API has the values of these keys even where they are not configured. */
const DEFAULT = { batch: 512, paging: 'auto', thinking: false } as const;

/** Returns the change that gives a tier this model, without what was set for another. Without a model, nothing else changes. */
export function modelPatch(model: string): TierPatch {
  if (model === '') return { model };
  return { model, ...Object.fromEntries(KEYS.map((key) => [key, OF_A_MODEL[key].fresh])) };
}

/** Returns the settings that a new model would reset, by their names in the window. */
export function ownSettings(tier: TierConfig): string[] {
  return KEYS.filter((key) => isOwn(tier, key)).map((key) => OF_A_MODEL[key].label);
}

/** Returns the change that gives a tier back its model and what was set for it. */
export function undoPatch(tier: TierConfig): TierPatch {
  const own = KEYS.filter((key) => isOwn(tier, key)).map((key) => [key, tier[key]]);
  return { ...modelPatch(tier.model), ...Object.fromEntries(own) };
}

function isOwn(tier: TierConfig, key: Key): boolean {
  if (key === 'sampling') return Object.values(tier.sampling ?? {}).some((value) => value !== null);
  const usual = key in DEFAULT ? DEFAULT[key as keyof typeof DEFAULT] : OF_A_MODEL[key].fresh;
  return (tier[key] ?? null) !== usual;
}

import type { ChainStatus, TierState, TierStatus } from '../../platform/api';
import { order } from '../chains/order';

/** The name under which a request lets the router choose. */
export const AUTO = 'auto';

const STATE_LABEL: Record<TierState, string> = {
  stopped: 'Not loaded',
  starting: 'Loading…',
  ready: 'Ready',
  busy: 'Answering',
  stopping: 'Stopping…',
  failed: 'Failed',
};

/** The state in words; of a load, how far it is. */
export function stateLabel({ state, loaded_percent: percent }: TierStatus): string {
  return state === 'starting' && percent !== null ? `Loading, ${percent} %` : STATE_LABEL[state];
}

export function holdsModel(state: TierState): boolean {
  return state === 'ready' || state === 'busy';
}

/** The tiers that could answer now, the ones that are answering first. */
export function loadedTiers(tiers: TierStatus[]): TierStatus[] {
  return tiers.filter((tier) => holdsModel(tier.state)).sort((a, b) => rank(a) - rank(b));
}

function rank(tier: TierStatus): number {
  return tier.state === 'busy' ? 0 : 1;
}

/** One sentence on who answers the next message of a chat that asks `model`. */
export function whoAnswers(model: string, tiers: TierStatus[], chain?: ChainStatus): string {
  if (!tiers.some((tier) => tier.model))
    return 'No tier has a model yet. Take one to begin with; it answers here, on this machine.';
  if (model === AUTO) {
    const loaded = loadedTiers(tiers)[0];
    if (loaded) return `Each question goes to the tier that suits it. ${loaded.id} is in memory now.`;
    return 'Each question goes to the tier that suits it. The first answer waits for its model to load.';
  }
  if (chain) return `${chain.name} asks ${order(chain)}. The first that can answers.`;
  const tier = tiers.find((tier) => tier.id === model);
  if (!tier) return `The tier ${model} no longer exists. Choose another one above.`;
  if (!tier.model) return `${tier.id} has no model yet. Give it one in Settings.`;
  if (holdsModel(tier.state)) return `${tier.id} will answer, with ${tier.model}. It is in memory.`;
  return `${tier.id} will answer, with ${tier.model}. It loads when you begin to write.`;
}

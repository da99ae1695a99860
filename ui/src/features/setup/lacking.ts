import type { TierStatus } from '../../platform/openapi';

/** The model that comes with Tierbar, to try things with. */
const STARTER = /^SmolLM2-135M/i;

/** Whether a tier has no model, or only the one to try things with. */
function lacksModel(tier: Pick<TierStatus, 'model' | 'engine'>): boolean {
  return tier.engine === 'embedded' && (tier.model === null || STARTER.test(tier.model));
}

/** Whether none of the three tiers has a model of use. */
export function needsSetUp(tiers: TierStatus[]): boolean {
  const usual = tiers.filter(({ id }) => ['fast', 'primary', 'heavy'].includes(id));
  return usual.length > 0 && usual.every(lacksModel);
}

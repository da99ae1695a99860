import type { TierStatus } from '../../platform/openapi';

/** Whether a tier has no model, or only the one to try things with. */
function lacksModel(tier: Pick<TierStatus, 'model' | 'engine' | 'is_starter'>): boolean {
  return tier.engine === 'embedded' && (tier.model === null || tier.is_starter);
}

/** Whether none of the three tiers has a model of use. */
export function needsSetUp(tiers: TierStatus[]): boolean {
  const usual = tiers.filter(({ id }) => ['fast', 'primary', 'heavy'].includes(id));
  return usual.length > 0 && usual.every(lacksModel);
}

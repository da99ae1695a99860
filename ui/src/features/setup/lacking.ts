import type { LibraryModel, SetupPlan, TierPlan, TierStatus } from '../../platform/openapi';

/** Whether a tier has no model, or only the one to try things with. */
function lacksModel(tier: Pick<TierStatus, 'model' | 'engine' | 'is_starter'>): boolean {
  return tier.engine === 'embedded' && (tier.model === null || tier.is_starter);
}

/** Whether none of the three tiers has a model of use. */
export function needsSetUp(tiers: TierStatus[]): boolean {
  const usual = tiers.filter(({ id }) => ['fast', 'primary', 'heavy'].includes(id));
  return usual.length > 0 && usual.every(lacksModel);
}

/** Whether a model is the one that comes with Tierbar, to try things with. */
export function isDemo({ id }: Pick<LibraryModel, 'id'>): boolean {
  return id.startsWith('SmolLM2-135M-Instruct');
}

/** The model to begin with, as the host proposes: the one for most questions, unless it is slow on this computer. */
export function firstModel(plan: SetupPlan | null): TierPlan | undefined {
  return plan?.tiers.find(({ tier }) => tier === plan.first);
}

/** Returns why a chat that requests `model` cannot be answered for want of a model; `null` if it can. */
export function lackedModel(model: string, tiers: TierStatus[]): string | null {
  const chats = tiers.filter(({ kind }) => kind === 'chat');
  const has = (tier: TierStatus) => tier.engine !== 'embedded' || tier.model !== null;
  if (!chats.some(has)) return 'No model is ready to answer yet.';
  const chosen = chats.find(({ id }) => id === model);
  return chosen && !has(chosen) ? `${chosen.id} has no model yet.` : null;
}

import type { AgentReport, TierStatus } from '../../platform/openapi';
import { AUTO, loadedTiers } from '../tiers/tiers';

/** Says how a model acts, by what was measured. */
export function describeActing({ way, calls, text, prompts }: AgentReport): string {
  if (way === null)
    return `This model is too small to act: ${calls.right} of ${prompts} first steps were right by tool calls, and ${text.right} by text.`;
  return way === 'text'
    ? `Acts by text: ${text.right} of ${prompts} first steps were right, and ${calls.right} by tool calls.`
    : `Acts by tool calls: ${calls.right} of ${prompts} first steps were right, and ${text.right} by text.`;
}

/** Returns the tier whose model can be measured for a chat that requests `model`: of several, one that is loaded. */
export function measurableTier(model: string, tiers: TierStatus[]): TierStatus | undefined {
  const able = tiers.filter((tier) => tier.kind === 'chat' && tier.engine === 'embedded' && tier.model);
  if (tiers.some((tier) => tier.id === model)) return able.find((tier) => tier.id === model);
  return model === AUTO ? (loadedTiers(able)[0] ?? able[0]) : undefined;
}

import { decimal } from '../../lib/format';
import type { AgentReport, Mark, TierStatus } from '../../platform/openapi';
import { AUTO, loadedTiers } from '../tiers/tiers';

/** Says how a model acts, by what was measured. */
export function describeActing({ way, calls, text, prompts }: AgentReport): string {
  if (way === null)
    return `Too small to act as an agent (tool calls: ${calls.right} of ${prompts} correct; text commands: ${text.right}).`;
  return way === 'text'
    ? `Uses text commands (${text.right} of ${prompts} correct; tool calls: ${calls.right}).`
    : `Uses tool calls (${calls.right} of ${prompts} correct; text commands: ${text.right}).`;
}

/** Says what a model is trusted with, by how it did in an examination. */
export function describeMark({ judgment, passed, right, of, milliseconds }: Mark): string {
  if (judgment === 'triage' && passed && milliseconds && milliseconds > 1000)
    return `Triage is off in chains: this model takes ${decimal(milliseconds / 1000, 1)} s for a message (${right} of ${of} correct).`;
  if (judgment === 'triage')
    return passed
      ? `Triage is on: this model sorted ${right} of ${of} messages correctly.`
      : `Triage is off: this model sorted ${right} of ${of} messages correctly.`;
  return passed
    ? `Auto asks this model about unclear requests: it rated ${right} of ${of} requests correctly.`
    : `Auto uses its rules alone: this model rated ${right} of ${of} requests correctly.`;
}

/** Returns the tier whose model can be measured for a chat that requests `model`: of several, one that is loaded. */
export function measurableTier(model: string, tiers: TierStatus[]): TierStatus | undefined {
  const able = tiers.filter((tier) => tier.kind === 'chat' && tier.engine === 'embedded' && tier.model);
  if (tiers.some((tier) => tier.id === model)) return able.find((tier) => tier.id === model);
  return model === AUTO ? (loadedTiers(able)[0] ?? able[0]) : undefined;
}

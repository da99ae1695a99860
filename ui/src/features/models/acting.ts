import { decimal } from '../../lib/format';
import type { Mark, TierStatus } from '../../platform/openapi';
import { AUTO, loadedTiers } from '../tiers/tiers';

/** Says what a model is trusted with, by how it did in an examination. The words of `Mark::sentence` in the host, which here are translated. */
export function describeMark({ judgment, passed, right, of, milliseconds, first_steps }: Mark): string {
  if (first_steps) {
    const { calls, text } = first_steps;
    if (!passed)
      return `Too small to act as an agent (tool calls: ${calls.right} of ${of} correct; text commands: ${text.right}).`;
    return text.right > calls.right
      ? `Uses text commands (${text.right} of ${of} correct; tool calls: ${calls.right}).`
      : `Uses tool calls (${calls.right} of ${of} correct; text commands: ${text.right}).`;
  }
  if (judgment === 'triage' && passed && milliseconds && milliseconds > 1000)
    return `Off in chains: ${decimal(milliseconds / 1000, 1)} s for a message (${right} of ${of} correct).`;
  return passed ? `On: ${right} of ${of} correct.` : `Off: ${right} of ${of} correct. A rule stands in.`;
}

/** Returns the tier whose model can be measured for a chat that requests `model`: of several, one that is loaded. */
export function measurableTier(model: string, tiers: TierStatus[]): TierStatus | undefined {
  const able = tiers.filter((tier) => tier.kind === 'chat' && tier.engine === 'embedded' && tier.model);
  if (tiers.some((tier) => tier.id === model)) return able.find((tier) => tier.id === model);
  return model === AUTO ? (loadedTiers(able)[0] ?? able[0]) : undefined;
}

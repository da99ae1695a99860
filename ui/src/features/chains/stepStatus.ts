import { span, windowUnits } from '../../lib/format';
import type { Gate, StepStatus, TierStatus } from '../../platform/openapi';
import { stateLabel } from '../tiers/tiers';
import { QUEUE } from './steps';

export interface StepDescription {
  /** Whether the step is available now. */
  tone: 'ok' | 'quiet' | 'warn' | 'danger';
  text: string;
  /** A command that fixes the problem. */
  command?: string;
}

/** Describes a step whose status was read `sinceMs` milliseconds ago. */
export function describeStep(
  step: StepStatus,
  sinceMs: number,
  tier: TierStatus | undefined,
  waiting: number,
): StepDescription {
  if ('gate' in step) return describeGate(step, step.server, sinceMs);
  if (step.step === QUEUE)
    return {
      tone: 'quiet',
      text:
        waiting > 0
          ? `Queues requests that no other step answers; ${waiting} waiting`
          : 'Queues requests that no other step answers',
    };
  if (tier === undefined) return { tone: 'danger', text: 'Removed' };
  if (tier.model === null) return { tone: 'danger', text: 'No model' };
  if (tier.state === 'failed')
    return { tone: 'danger', text: tier.reason ? `Failed: ${windowUnits(tier.reason)}` : 'Failed' };
  if (tier.state === 'stopped') return { tone: 'quiet', text: 'Loads on request' };
  return { tone: tier.state === 'stopping' ? 'quiet' : 'ok', text: stateLabel(tier) };
}

function describeGate(gate: Gate, server: string, sinceMs: number): StepDescription {
  const open: StepDescription = { tone: 'ok', text: 'Available' };
  if (gate.gate === 'trying') return { tone: 'warn', text: 'Failing: testing with one request' };
  if (gate.gate === 'open') return open;
  const left = gate.for_ms - sinceMs;
  if (gate.gate === 'broken')
    return left > 0
      ? { tone: 'warn', text: `Failing: next attempt in ${span(left / 1000)}` }
      : { tone: 'warn', text: 'Failing: the next request tests it' };
  if (left <= 0) return open;
  if (gate.gate === 'cooling')
    return { tone: 'warn', text: `Rate limited: next attempt in ${span(left / 1000)}` };
  return {
    tone: 'danger',
    text: `Key refused: next attempt in ${span(left / 1000)}. To replace the key, run`,
    command: `tierbar secret set ${server}`,
  };
}

import { span } from '../../lib/format';
import type { Gate, StepStatus, TierStatus } from '../../platform/api';
import { stateLabel } from '../tiers/tiers';
import { QUEUE } from './order';

export interface StepWords {
  /** Whether it would be asked now: gladly, perhaps, or not. */
  tone: 'ok' | 'quiet' | 'warn' | 'danger';
  text: string;
  /** What the user can do about it, as a command. */
  command?: string;
}

/** How a step stands, so many milliseconds after that was told. */
export function stepWords(
  step: StepStatus,
  sinceMs: number,
  tier: TierStatus | undefined,
  waiting: number,
): StepWords {
  if ('gate' in step) return gateWords(step, step.server, sinceMs);
  if (step.step === QUEUE)
    return {
      tone: 'quiet',
      text: `Keeps what nobody answers${waiting > 0 ? `; ${waiting} waiting now` : ''}`,
    };
  if (tier === undefined) return { tone: 'danger', text: 'Removed' };
  if (tier.model === null) return { tone: 'danger', text: 'Has no model' };
  if (tier.state === 'failed')
    return { tone: 'danger', text: tier.reason ? `Failed: ${tier.reason}` : 'Failed' };
  if (tier.state === 'stopped') return { tone: 'quiet', text: 'Loads when it is asked' };
  return { tone: tier.state === 'stopping' ? 'quiet' : 'ok', text: stateLabel(tier) };
}

function gateWords(gate: Gate, server: string, sinceMs: number): StepWords {
  const open: StepWords = { tone: 'ok', text: 'May be asked' };
  if (gate.gate === 'trying') return { tone: 'warn', text: 'Failing: one request is trying it' };
  if (gate.gate === 'open') return open;
  const left = gate.for_ms - sinceMs;
  if (gate.gate === 'broken')
    return left > 0
      ? { tone: 'warn', text: `Failing: left alone for ${span(left / 1000)}, then one request tries it` }
      : { tone: 'warn', text: 'Failing: one request tries it next' };
  if (left <= 0) return open;
  if (gate.gate === 'cooling')
    return { tone: 'warn', text: `Left alone for ${span(left / 1000)}: too many requests` };
  return {
    tone: 'danger',
    text: `Key refused, left alone for ${span(left / 1000)}. Give another:`,
    command: `tierbar secret set ${server}`,
  };
}

import { count, duration } from '../../lib/format';
import type { Speculation } from '../../platform/openapi';

/** Says what predicted an answer's tokens, and what that has saved. */
export function describeSpeculation({ drafted, accepted, by_model, saved_ms }: Speculation): string[] {
  if (drafted === 0) return ['speculation off: slower, or not exact'];
  const facts = [describeDrafts(drafted, accepted, by_model)];
  if (saved_ms >= 50) facts.push(`${duration(saved_ms)} saved by speculation`);
  return facts;
}

function describeDrafts(drafted: number, accepted: number, byModel: number): string {
  const [right, all] = [count(accepted), count(drafted)];
  if (byModel === 0) return `prompt lookup: ${right} of ${all} tokens accepted`;
  if (byModel === drafted) return `draft model: ${right} of ${all} tokens accepted`;
  return `prompt lookup and draft model: ${right} of ${all} tokens accepted`;
}

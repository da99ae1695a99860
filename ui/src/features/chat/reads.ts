import { duration, fileSize } from '../../lib/format';
import type { ExpertReads } from '../../platform/openapi';

/** Says what an answer of a model larger than memory has cost. */
export function describeReads(reads: ExpertReads): string[] {
  const facts: string[] = [];
  if (reads.read_bytes > 0 || !reads.approximated) {
    const part = Math.floor(reads.hit_rate * 100);
    facts.push(
      reads.layers ? `${part} % of layers in memory` : `${part} % of experts in memory`,
      describeBytes(reads),
    );
  }
  if (reads.approximated) {
    const part = Math.ceil(reads.approximated.changed * 100);
    facts.push(`approximate: ${part} % of experts replaced or left out`);
  }
  return facts;
}

function describeBytes({ read_bytes, tokens, wait_ms }: ExpertReads): string {
  // Older answers were stored without their number of tokens.
  if (!tokens) return `${fileSize(read_bytes)} read from disk`;
  const read = fileSize(Math.round(read_bytes / tokens));
  return wait_ms === null
    ? `${read} read per token`
    : `${read} read and ${duration(wait_ms / tokens)} waited per token`;
}

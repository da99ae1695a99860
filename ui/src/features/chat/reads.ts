import { duration, fileSize } from '../../lib/format';
import type { ExpertReads } from '../../platform/openapi';

/** Says what an answer of a model larger than memory has cost. */
export function describeReads(reads: ExpertReads): string[] {
  const facts: string[] = [];
  const tokens = Math.max(1, reads.tokens ?? 0);
  if (reads.read_bytes > 0 || !reads.approximated) {
    const part = Math.floor(reads.hit_rate * 100);
    const what = reads.layers ? 'layers' : 'experts';
    const read = fileSize(Math.round(reads.read_bytes / tokens));
    facts.push(
      `${part} % of ${what} in memory`,
      `${read} read and ${duration(reads.wait_ms / tokens)} waited per token`,
    );
  }
  if (reads.approximated) {
    const part = Math.ceil(reads.approximated.changed * 100);
    facts.push(`approximate: ${part} % of experts replaced or left out`);
  }
  return facts;
}

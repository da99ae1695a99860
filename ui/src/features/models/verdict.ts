import { count, decimal, memory, windowUnits } from '../../lib/format';
import type { Caution, Grounds, Verdict } from '../../platform/openapi';
import { GROUP } from './labels';

/** Returns whether and how a model runs, with the figures that decided: `Verdict.summary` in the page's language. */
export function summaryOf(verdict: Verdict): string {
  const { placement, lines, total_bytes, budget_bytes, context_tokens, largest_context_tokens } = verdict;
  const read = lines.reduce((sum, { what, bytes }) => (GROUP[what] === 'paged' ? sum + bytes : sum), 0);
  const [needed, budget] = apart(total_bytes + read, budget_bytes);
  if (placement === 'refused') {
    return largest_context_tokens === null
      ? `Does not fit this computer: with a context of ${count(context_tokens)} tokens it needs ${needed}, and the budget is ${budget}.`
      : `Does not fit this computer: with a context of ${count(context_tokens)} tokens it needs ${needed}, and the budget is ${budget}. It fits with a context of ${count(largest_context_tokens)} tokens.`;
  }
  if (placement !== 'resident')
    return `Runs with ${memory(read)} of its weights read from the disk as needed: it needs ${needed}, and the budget is ${budget}.`;
  // What has its place beside a chat model counts neither Tierbar nor that place.
  return lines.some(({ what }) => what === 'app')
    ? `Runs fully in memory: ${needed} of ${budget}.`
    : `Loads beside a chat model: it needs ${needed}.`;
}

/** Returns what to know although it runs, '' if nothing: `Verdict.warning` in the page's language. */
export function warningOf({ cautions = [] }: Verdict): string {
  return cautions.map(sentenceOf).join(' ');
}

function sentenceOf(caution: Caution): string {
  switch (caution.kind) {
    case 'shorter_context':
      return `It was trained for a context of ${count(caution.context_tokens)} tokens, so the tier uses that.`;
    case 'takes_turns':
      return `It takes turns with chat models, because it needs more than the ${memory(caution.reserved_bytes)} that are reserved beside them.`;
    case 'expert_cache':
      return `${memory(caution.cache_bytes)} of its ${memory(caution.expert_bytes)} of experts are kept in memory, and the others are read from the disk when they are needed: the speed depends on the disk.`;
    case 'experts_on_disk':
      return `${memory(caution.disk_bytes)} of its ${memory(caution.expert_bytes)} of experts are read from the disk, so answers are slow and depend on the speed of the disk.`;
    case 'weights_on_disk':
      return `${memory(caution.disk_bytes)} of its weights are read from the disk for every token, so answers are very slow.`;
    case 'over_budget':
      return `It needs ${memory(caution.excess_bytes)} more than the budget: close other apps, and expect slow answers while they need memory.`;
    case 'part_on_gpu':
      return `${caution.layers} of its ${caution.layers_all} layers fit the GPU’s ${memory(caution.limit_bytes)}. The CPU computes the rest, which is slower.`;
    case 'no_draft_model':
      return `It answers without its draft model: there is no room for the ${memory(caution.needed_bytes)} that it needs.`;
    case 'no_projector':
      return `It accepts only text here: there is no room for its projector of ${memory(caution.needed_bytes)}, which images and sound need.`;
  }
}

const BASIS: Record<Grounds['basis'], string> = {
  largest: 'It is the largest that fits in memory.',
  few_bits: 'It is the largest that fits in memory. Below 4 bits per weight, answers get visibly worse.',
  balanced: 'It fits in memory with 4 to 5 bits per weight, the usual balance of speed and quality.',
  smallest: 'It is the smallest, and it fits in memory.',
  balanced_on_disk:
    'It keeps 4 to 5 bits per weight. What exceeds the memory is read from the disk as needed.',
  least_from_disk: 'None fits in memory. Of those that run, it reads the least from the disk.',
};

/** Returns why a quant is the one for this computer: its `reason` in the page's language, '' without one. */
export function whyOf({ reason, grounds }: { reason: string | null; grounds: Grounds | null }): string {
  if (grounds === null) return windowUnits(reason ?? '');
  const { basis, measured, perplexity_increase } = grounds;
  if (measured === null || perplexity_increase === null) return BASIS[basis];
  return [
    BASIS[basis],
    `Published for ${measured} of Llama 3 8B: perplexity ${decimal(perplexity_increase * 100, 1)} % above 16 bits.`,
  ].join(' ');
}

const GIB = 2 ** 30;

/** Two sizes in words, with as many decimals as set them apart. */
function apart(left: number, right: number): [string, string] {
  if (left === right || memory(left) !== memory(right)) return [memory(left), memory(right)];
  const digits = [2, 3].find((digits) => decimal(left / GIB, digits) !== decimal(right / GIB, digits)) ?? 3;
  return [`${decimal(left / GIB, digits)} GB`, `${decimal(right / GIB, digits)} GB`];
}

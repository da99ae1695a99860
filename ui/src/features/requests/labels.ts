import { decimal } from '../../lib/format';
import type { RequestRecord } from '../../platform/openapi';
import { dollars } from '../costs/sums';

const DIALECTS: [RegExp, string][] = [
  [/^\/tierbar\/v1\/chats/, 'Chat'],
  [/^\/v1\/messages/, 'Anthropic'],
  [/^\/v1\/chat\/completions/, 'OpenAI'],
  [/^\/v1\/responses/, 'OpenAI Responses'],
  [/^\/v1\/completions/, 'OpenAI, text'],
  [/^\/(v1|api)\/embed/, 'Embeddings'],
  [/^\/v1\/rerank/, 'Reranking'],
  [/^\/v1\/(triage|compress|summarize|brief)/, 'Task'],
  [/^\/api\//, 'Ollama'],
];

/** Names what a request came through. */
export function dialect(path: string): string {
  return DIALECTS.find(([form]) => form.test(path))?.[1] ?? path;
}

/** How a request ended, in a word or two. */
export function outcomeText({ outcome, code }: RequestRecord): string {
  if (outcome === 'answered') return 'Answered';
  if (outcome === 'cancelled') return 'Canceled';
  const words = code?.replaceAll('_', ' ') ?? 'failed';
  return words.charAt(0).toUpperCase() + words.slice(1);
}

export const OUTCOME_TONE = { answered: '', cancelled: 'caption', failed: 'tone-danger' } as const;

/** The energy and the money that a request took, where they are known. */
export function tookText({ millijoules, paid }: RequestRecord): string | undefined {
  const energy = millijoules ? `${decimal(millijoules / 1000, 1)} J` : null;
  const parts = [energy, paid ? dollars(paid) : null].filter((part) => part !== null);
  return parts.length > 0 ? parts.join(' · ') : undefined;
}

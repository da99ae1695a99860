import { decimal } from '../../lib/format';
import type { RequestRecord } from '../../platform/openapi';
import { dollars } from '../costs/sums';

const DIALECTS: [RegExp, string][] = [
  [/^\/tierbar\/v1\/chats/, 'Chat'],
  [/^\/v1\/agent/, 'Agent'],
  [/^\/v1\/documents/, 'Documents'],
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
  return FAILED[code ?? ''] ?? 'Failed';
}

/** By the code of the error. */
const FAILED: Record<string, string> = {
  access_denied: 'Access denied',
  bad_request: 'Bad request',
  budget_spent: 'Budget spent',
  config_invalid: 'Invalid configuration',
  conflict: 'Conflict',
  context_length_exceeded: 'Context exceeded',
  context_mismatch: 'Other saved context',
  context_unknown: 'Unknown saved context',
  corrupt: 'Invalid data',
  forbidden: 'Not allowed',
  internal: 'Internal error',
  measuring: 'Tier being measured',
  method_not_allowed: 'Wrong method',
  model_invalid: 'Invalid model',
  model_missing: 'Model missing',
  model_unknown: 'Unknown model',
  model_unsupported: 'Unsupported model',
  not_found: 'Not found',
  over_budget: 'Over budget',
  overloaded: 'Too many requests',
  paused: 'Paused',
  payload_too_large: 'Request too large',
  previous_response_not_found: 'Previous response missing',
  request_timeout: 'Client too slow',
  shutting_down: 'Tierbar quit',
  storage: 'Disk full or not writable',
  tier_failed: 'Tier failed',
  tier_stopped: 'Tier stopped',
  tier_unknown: 'Unknown tier',
  unauthorized: 'No valid key',
  unreachable: 'Server unreachable',
  unsupported_media_type: 'Compressed request',
  websocket_connection_limit_reached: 'Connection too long',
  worker_crashed: 'Worker crashed',
  worker_timeout: 'Worker too slow',
};

export const OUTCOME_TONE = { answered: '', cancelled: 'caption', failed: 'tone-danger' } as const;

/** The energy and the money that a request took, where they are known. */
export function tookText({ millijoules, paid }: RequestRecord): string | undefined {
  const energy = millijoules ? `${decimal(millijoules / 1000, 1)} J` : null;
  const parts = [energy, paid ? dollars(paid) : null].filter((part) => part !== null);
  return parts.length > 0 ? parts.join(' · ') : undefined;
}

import { type Api, ApiError, errorFromBody } from '../../lib/http';
import { readSse } from '../../lib/sse';
import type { Finish, Role } from '../../platform/api';

export interface CompletionRequest {
  model: string;
  messages: { role: Role; content: string }[];
  signal: AbortSignal;
}

/** What a stream of `POST /v1/chat/completions` says, in the order it says it. */
export type CompletionEvent =
  /**
   * Who answers, and why if the router or a chain chose; `insteadOf`: the chain's first step, if that could not.
   * Unknown where the response's headers cannot be read; a chain tells it again with its first event.
   */
  | {
      type: 'from';
      tier: string | null;
      model: string | null;
      why: string | null;
      insteadOf: string | null;
    }
  /** The tier is being loaded; repeated while it is. */
  | { type: 'loading' }
  | { type: 'text'; text: string }
  | { type: 'timings'; decodeTokensPerSecond: number }
  | { type: 'finish'; finish: Finish };

interface Chunk {
  model?: string;
  choices?: { delta?: { content?: string | null }; finish_reason?: string | null }[];
  timings?: { predicted_per_second?: number };
  /** From a chain. */
  tierbar?: {
    tier: string | null;
    model: string | null;
    fallback_from: string | null;
    tried: { tier: string; why: string }[];
  };
}

/**
 * Streams one answer. Throws the API's error when it refuses, when an error arrives within the stream, and when the
 * stream breaks off before its `[DONE]`.
 */
export async function* streamCompletion(
  api: Api,
  request: CompletionRequest,
): AsyncGenerator<CompletionEvent> {
  const { model, messages, signal } = request;
  const body = { model, messages, stream: true, stream_options: { include_usage: true } };
  const response = await api.stream('/v1/chat/completions', { body, signal });
  const tier = response.headers.get('x-tierbar-tier');
  const why = response.headers.get('x-tierbar-why');
  let answeredBy = response.headers.get('x-tierbar-model');
  yield { type: 'from', tier, model: answeredBy, why, insteadOf: null };

  const brokeOff = () =>
    new ApiError('worker_crashed', 'The answer was interrupted.', 'The answer so far is kept. Try again.');
  if (response.body === null) throw brokeOff();
  try {
    for await (const item of readSse(response.body)) {
      if ('comment' in item) {
        if (item.comment.startsWith('loading')) yield { type: 'loading' };
        continue;
      }
      if (item.data === '[DONE]') return;
      const chunk = parse(item.data);
      const error = errorFromBody(chunk);
      if (error) throw error;
      if (chunk.tierbar) {
        const { tier, model, fallback_from: insteadOf, tried } = chunk.tierbar;
        answeredBy = model;
        const why = tried.map((step) => `${step.tier}: ${step.why}`).join('; ') || null;
        yield { type: 'from', tier, model, why, insteadOf };
      } else if (answeredBy === null && chunk.model) {
        answeredBy = chunk.model;
        yield { type: 'from', tier, model: answeredBy, why, insteadOf: null };
      }
      const choice = chunk.choices?.[0];
      if (choice?.delta?.content) yield { type: 'text', text: choice.delta.content };
      const rate = chunk.timings?.predicted_per_second;
      if (typeof rate === 'number' && Number.isFinite(rate))
        yield { type: 'timings', decodeTokensPerSecond: rate };
      if (choice?.finish_reason)
        yield { type: 'finish', finish: choice.finish_reason === 'length' ? 'length' : 'stop' };
    }
  } catch (cause) {
    if (signal.aborted || cause instanceof ApiError) throw cause;
    throw brokeOff();
  }
  throw brokeOff();
}

function parse(data: string): Chunk {
  try {
    const value: unknown = JSON.parse(data);
    if (typeof value === 'object' && value !== null) return value as Chunk;
  } catch {
    // Told below.
  }
  throw new ApiError('internal', 'The server sent an invalid answer.');
}

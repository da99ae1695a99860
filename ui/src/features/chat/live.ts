import type { ChatMessage, ConsentQuestion, LeftOut, TurnEvent } from '../../platform/openapi';
import { beginsThinking, splitThinking } from './thinking';
import type { ToolUse } from './tools';
import type { Message } from './turns';

/** The answer that is being written. */
export interface LiveAnswer {
  text: string;
  /** What the model thinks before it answers. */
  reasoning: string;
  /** How long it thinks; `null` if it does not. */
  thinking: LiveThinking | null;
  tier: string | null;
  model: string | null;
  /** Why the router chose the tier, or why the steps of a chain before it did not answer. */
  why: string | null;
  /** The chain's first step, if another one answers. */
  insteadOf: string | null;
  /** The tier is loading. */
  loading: boolean;
  /** The oldest messages are being summarized. */
  summarizing: boolean;
  /** The messages that its prompt is without. */
  leftOut: LeftOut | null;
  /** Measured by the host. */
  tokensPerSecond: number | null;
  firstTokenMs: number | null;
  /** What its agent has done so far. */
  steps: ToolUse[];
  /** What its agent waits for. */
  consent: ConsentQuestion | null;
}

export interface LiveThinking {
  /** When it began, in milliseconds since 1970. */
  since: number;
  /** How long it took so far, by the host's clock. */
  ms: number;
  /** It goes on. */
  isOpen: boolean;
}

export type Ending = Extract<TurnEvent, { message: ChatMessage } | { answer: ChatMessage | null }>;
type Running = Exclude<TurnEvent, Ending>;

/** The answer before its first event, with what one that is continued has already. */
export function beginAnswer(continued?: Message): LiveAnswer {
  return {
    text: continued?.content ?? '',
    reasoning: continued?.reasoning ?? '',
    thinking: null,
    tier: null,
    model: null,
    why: null,
    insteadOf: null,
    loading: false,
    summarizing: false,
    leftOut: null,
    tokensPerSecond: null,
    firstTokenMs: null,
    steps: [],
    consent: null,
  };
}

/** The answer after one more event. `asked`: when the model was asked last. */
export function advance(live: LiveAnswer, event: Running, asked: number | null, now: number): LiveAnswer {
  switch (event.type) {
    case 'progress':
      return { ...live, loading: event.stage === 'load', summarizing: event.stage === 'summarize' };
    case 'left_out': {
      const { type: _type, ...leftOut } = event;
      return { ...live, leftOut, summarizing: false };
    }
    case 'started': {
      const { tier, model, why, instead_of: insteadOf } = event;
      return { ...live, tier, model, why, insteadOf };
    }
    case 'reasoning':
      return {
        ...live,
        reasoning: live.reasoning + event.text,
        thinking: thinkingOf(live, event, true),
        loading: false,
        tokensPerSecond: rate(event),
      };
    case 'text': {
      const text = live.text + event.text;
      // What a continued answer has already took no token of this turn.
      if (event.tokens === 0) return { ...live, text };
      const firstTokenMs = live.firstTokenMs ?? (asked === null ? null : now - asked);
      const thinking = thinkingOf(live, event, thinksAfter(live, text, event.text));
      return { ...live, text, thinking, loading: false, tokensPerSecond: rate(event), firstTokenMs };
    }
    case 'tool_call': {
      const { id, name, arguments: text } = event;
      const step = { id, name, arguments: text, result: null, failed: false };
      return { ...live, loading: false, consent: null, steps: [...live.steps, step] };
    }
    case 'tool_result': {
      const { id, text: result, failed } = event;
      return {
        ...live,
        firstTokenMs: null,
        steps: live.steps.map((step) => (step.id === id ? { ...step, result, failed } : step)),
      };
    }
    case 'consent':
      return { ...live, loading: false, consent: event.question };
    case 'consent_answered':
      return { ...live, firstTokenMs: null, consent: live.consent?.id === event.id ? null : live.consent };
  }
}

/** Whether the model still thinks in the text of its answer, to which a piece has been added. */
function thinksAfter({ text: before, thinking }: LiveAnswer, text: string, piece: string): boolean {
  if (!beginsThinking(text)) return false;
  // Only a piece of a tag can change it.
  if (beginsThinking(before) && !piece.includes('>')) return thinking?.isOpen ?? false;
  return splitThinking(text, true).isOpen;
}

function thinkingOf(
  { thinking }: LiveAnswer,
  { decode_ms: ms }: { decode_ms: number },
  isOpen: boolean,
): LiveThinking | null {
  if (isOpen) return { since: thinking?.since ?? Date.now() - ms, ms, isOpen };
  return thinking?.isOpen ? { ...thinking, ms, isOpen } : thinking;
}

/** Tokens per second so far. */
function rate({ tokens, decode_ms }: { tokens: number; decode_ms: number }): number | null {
  // A rate over less than a quarter of a second jumps about.
  return decode_ms < 250 ? null : ((tokens - 1) * 1000) / decode_ms;
}

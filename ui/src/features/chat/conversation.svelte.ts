import { type Api, ApiError, asApiError } from '../../lib/http';
import type { Chat, ChatSummary, Finish } from '../../platform/api';
import { AUTO } from '../tiers/tiers';
import { streamCompletion } from './completion';
import { type Message, promptOf, textOf, turnsOf } from './turns';

/** The answer that is being written. */
export interface LiveAnswer {
  text: string;
  tier: string | null;
  model: string | null;
  /** Why the router chose the tier, or what the steps of a chain said before it. */
  why: string | null;
  /** The chain's first step, if that could not answer. */
  insteadOf: string | null;
  /** The tier was said to be loading. */
  loading: boolean;
  /** Measured here, from the words as they come, until the worker says its own figure. */
  tokensPerSecond: number | null;
  firstTokenMs: number | null;
}

/** What a conversation needs from the page around it. */
export interface Surroundings {
  api: Api;
  /** The chat was made or changed on the host. */
  onSummary(summary: ChatSummary): void;
  /** Milliseconds in which the tier was seen to load between two times of `performance.now()`. */
  loadWithin(tier: string | null, since: number, until: number): number | null;
}

let lastKey = 0;

/** Owns one chat on this page: its messages, its draft, the answer that streams into it. */
export class Conversation {
  /** `null` until the first message is sent. */
  id = $state<string | null>(null);
  model = $state(AUTO);
  draft = $state('');
  messages = $state.raw<Message[]>([]);
  live = $state.raw<LiveAnswer | null>(null);
  /** From sending until the answer is kept. */
  busy = $state(false);
  problem = $state.raw<ApiError | null>(null);
  /** The history is being fetched. */
  opening = $state(false);
  /** Which answer of a turn is shown, by the turn's key; absent: the newest. */
  chosen = $state<Record<number, number | undefined>>({});
  turns = $derived(turnsOf(this.messages));

  #around: Surroundings;
  #stop = new AbortController();

  constructor(around: Surroundings) {
    this.#around = around;
  }

  async open(id: string): Promise<void> {
    this.id = id;
    this.opening = true;
    this.problem = null;
    try {
      const chat = await this.#around.api.get<Chat>(`/tierbar/v1/chats/${encodeURIComponent(id)}`);
      this.model = chat.model;
      this.messages = chat.messages.map((message) => held({ ...message, content: textOf(message) }, true));
    } catch (cause) {
      this.problem = asApiError(cause);
    } finally {
      this.opening = false;
    }
  }

  async choose(model: string): Promise<void> {
    this.model = model;
    if (this.id === null) return;
    try {
      const path = `/tierbar/v1/chats/${encodeURIComponent(this.id)}`;
      this.#around.onSummary(await this.#around.api.patch<ChatSummary>(path, { model }));
    } catch (cause) {
      this.problem = asApiError(cause);
    }
  }

  async send(text: string): Promise<void> {
    if (this.busy || this.opening || text.trim() === '') return;
    this.draft = '';
    this.messages = [...this.messages, held({ ...EMPTY, role: 'user', content: text }, false)];
    await this.answer();
  }

  /** Answers the last question: for the first time, after an error, or once more. */
  async answer(): Promise<void> {
    if (this.busy) return;
    const sent = performance.now();
    const stop = new AbortController();
    this.#stop = stop;
    this.busy = true;
    this.problem = null;
    this.live = {
      text: '',
      tier: null,
      model: null,
      why: null,
      insteadOf: null,
      loading: false,
      tokensPerSecond: null,
      firstTokenMs: null,
    };
    try {
      await this.#save();
      if (!stop.signal.aborted) await this.#stream(sent, stop.signal);
    } catch (cause) {
      this.problem = asApiError(cause);
    } finally {
      this.live = null;
      this.busy = false;
    }
  }

  stop(): void {
    this.#stop.abort();
  }

  /** The page goes away, and the connection with it: what has been written so far is kept. */
  leave(): void {
    const live = this.live;
    if (live === null || this.id === null) return;
    this.live = null;
    if (live.text !== '') {
      const message = finished(live, 'stopped');
      this.messages = [...this.messages, { ...held(message, true) }];
      this.#around.api.farewell(`/tierbar/v1/chats/${encodeURIComponent(this.id)}/messages`, message);
    }
    this.stop();
  }

  async #stream(sent: number, signal: AbortSignal): Promise<void> {
    const words = new Words();
    let live = this.live as LiveAnswer;
    let finish: Finish | null = null;
    let ended = sent;
    // One paint per frame, however fast the words come.
    let frame = 0;
    const show = () => {
      frame = 0;
      if (this.live !== null) this.live = { ...live };
    };
    const showSoon = () => {
      if (frame === 0) frame = requestAnimationFrame(show);
    };
    try {
      const messages = promptOf(this.messages, this.chosen);
      for await (const event of streamCompletion(this.#around.api, { model: this.model, messages, signal })) {
        if (event.type === 'from') {
          const { tier, model, why, insteadOf } = event;
          live = { ...live, tier, model, why, insteadOf };
        } else if (event.type === 'loading') live = { ...live, loading: true };
        else if (event.type === 'timings') live = { ...live, tokensPerSecond: event.decodeTokensPerSecond };
        else if (event.type === 'finish') finish = event.finish;
        else {
          const now = performance.now();
          if (live.firstTokenMs === null) {
            ended = now;
            live = { ...live, firstTokenMs: now - sent };
          }
          live = {
            ...live,
            text: live.text + event.text,
            loading: false,
            tokensPerSecond: words.add(now) ?? live.tokensPerSecond,
          };
        }
        showSoon();
      }
      finish ??= 'stop';
    } catch (cause) {
      finish = signal.aborted ? 'stopped' : 'error';
      if (!signal.aborted) this.problem = asApiError(cause);
    } finally {
      cancelAnimationFrame(frame);
    }
    // `leave` has kept the answer already, or there is none to keep.
    const nothingCame = live.text === '' && (finish === 'stopped' || finish === 'error');
    if (this.live === null || nothingCame) return;
    const loadMs = this.#around.loadWithin(live.tier, sent, ended);
    const { why, insteadOf } = live;
    this.messages = [...this.messages, { ...held(finished(live, finish), false), loadMs, why, insteadOf }];
    const turn = this.turns.at(-1);
    if (turn) this.chosen[turn.key] = undefined;
    this.live = null;
    try {
      await this.#save();
    } catch (cause) {
      // What went wrong with the answer itself comes first.
      this.problem ??= asApiError(cause);
    }
  }

  /** Saves what is not saved yet, in order, and makes the chat if there is none. */
  async #save(): Promise<void> {
    const { api, onSummary } = this.#around;
    try {
      if (this.id === null) {
        const summary = await api.post<ChatSummary>('/tierbar/v1/chats', { model: this.model });
        this.id = summary.id;
        onSummary(summary);
      }
      for (const message of this.messages.filter((message) => !message.saved)) {
        const { key, saved: _saved, loadMs: _loadMs, why: _why, insteadOf: _insteadOf, ...body } = message;
        const path = `/tierbar/v1/chats/${encodeURIComponent(this.id)}/messages`;
        onSummary(await api.post<ChatSummary>(path, body satisfies Body));
        this.#mark((other) => (other.key === key ? { ...other, saved: true } : other));
      }
    } catch (cause) {
      if (cause instanceof ApiError && cause.status === 404) {
        // Deleted elsewhere: the next try keeps it all in a new chat.
        this.id = null;
        this.#mark((message) => ({ ...message, saved: false }));
      }
      throw cause;
    }
  }

  #mark(change: (message: Message) => Message): void {
    this.messages = this.messages.map(change);
  }
}

const EMPTY = {
  tier: null,
  model: null,
  finish: null,
  decode_tokens_per_second: null,
  time_to_first_token_ms: null,
};

type Body = Omit<Message, 'key' | 'saved' | 'loadMs' | 'why' | 'insteadOf'>;

function held(message: Body, saved: boolean): Message {
  lastKey += 1;
  const { role, content, tier, model, finish, decode_tokens_per_second, time_to_first_token_ms } = message;
  const body = { role, content, tier, model, finish, decode_tokens_per_second, time_to_first_token_ms };
  return { ...body, key: lastKey, saved, loadMs: null, why: null, insteadOf: null };
}

function finished(live: LiveAnswer, finish: Finish): Body {
  return {
    role: 'assistant',
    content: live.text,
    tier: live.tier,
    model: live.model,
    finish,
    decode_tokens_per_second: live.tokensPerSecond,
    time_to_first_token_ms: live.firstTokenMs,
  };
}

/** Speed of the words as they come; a chunk of the stream is a token. */
class Words {
  #count = 0;
  #first = 0;

  add(now: number): number | null {
    this.#count += 1;
    if (this.#count === 1) this.#first = now;
    const seconds = (now - this.#first) / 1000;
    // A rate over less than a quarter of a second jumps about.
    return seconds < 0.25 ? null : (this.#count - 1) / seconds;
  }
}

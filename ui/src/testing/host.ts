import { vi } from 'vitest';
import type { Message } from '../features/chat/turns';
import type { ChainStatus, Chat, ChatSummary, Entry, JobStatus, Status } from '../platform/api';

/** A request as it left the page. */
export interface Sent {
  method: string;
  path: string;
  headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: each test knows the body that it sent.
  body: any;
  keepalive: boolean;
  signal: AbortSignal | null;
}

/** A response body that a test writes in pieces. */
export class Stream {
  readonly request: Sent;
  readonly response: Response;
  #controller!: ReadableStreamDefaultController<Uint8Array>;
  /** Whether the page has closed it. */
  closed = false;

  constructor(request: Sent, headers: Record<string, string> = {}) {
    this.request = request;
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        this.#controller = controller;
      },
      cancel: () => {
        this.closed = true;
      },
    });
    request.signal?.addEventListener('abort', () => {
      if (this.closed) return;
      this.closed = true;
      this.#controller.error(new DOMException('The user aborted a request.', 'AbortError'));
    });
    this.response = new Response(body, { headers: { 'content-type': 'text/event-stream', ...headers } });
  }

  write(text: string): void {
    this.#controller.enqueue(new TextEncoder().encode(text));
  }
  data(value: unknown): void {
    this.write(`data: ${JSON.stringify(value)}\n\n`);
  }
  event(name: string, value: unknown): void {
    this.write(`event: ${name}\ndata: ${JSON.stringify(value)}\n\n`);
  }
  words(content: string): void {
    this.data({ choices: [{ delta: { content } }] });
  }
  finish(reason: string, tokensPerSecond: number): void {
    this.data({
      choices: [{ delta: {}, finish_reason: reason }],
      timings: { predicted_per_second: tokensPerSecond },
    });
    this.write('data: [DONE]\n\n');
    this.end();
  }
  end(): void {
    this.closed = true;
    this.#controller.close();
  }
  /** Fails the stream, as when the host's process is gone. */
  breakOff(): void {
    this.closed = true;
    this.#controller.error(new TypeError('network error'));
  }
}

/** A stand-in for the host: stores chats as the host does, and leaves streams to the test. */
export class Network {
  requests: Sent[] = [];
  chats: StoredChat[] = [];
  /** The event log, newest first. */
  log: Entry[] = [];
  chains: ChainStatus[] = [];
  /** Queued requests, newest first. */
  jobs: JobStatus[] = [];
  completions: Stream[] = [];
  eventStreams: Stream[] = [];
  /** Answers a request instead of the defaults below; `null` lets it through. */
  override: (request: Sent) => Response | null = () => null;
  #ids = 0;

  constructor() {
    vi.stubGlobal('fetch', (url: string, init: RequestInit = {}) => this.#fetch(url, init));
  }

  sent(method: string, path: string): Sent[] {
    return this.requests.filter((request) => request.method === method && request.path === path);
  }

  messages(id: string): Body[] {
    return this.chats.find((chat) => chat.id === id)?.messages ?? [];
  }

  async #fetch(url: string, init: RequestInit): Promise<Response> {
    const request: Sent = {
      method: init.method ?? 'GET',
      path: url,
      headers: new Headers(init.headers),
      body: typeof init.body === 'string' ? JSON.parse(init.body) : undefined,
      keepalive: init.keepalive ?? false,
      signal: init.signal ?? null,
    };
    this.requests.push(request);
    const other = this.override(request);
    if (other) return other;
    if (url.endsWith('/v1/chat/completions')) {
      const stream = new Stream(request, {
        'x-tierbar-tier': 'fast',
        'x-tierbar-model': 'smol',
        'x-tierbar-why': 'it is a greeting; fast is loaded',
      });
      this.completions.push(stream);
      return stream.response;
    }
    if (url.endsWith('/tierbar/v1/events')) {
      const stream = new Stream(request);
      this.eventStreams.push(stream);
      return stream.response;
    }
    if (url.endsWith('/tierbar/v1/expect')) return new Response(null, { status: 204 });
    if (url.endsWith('/tierbar/v1/chains')) return Response.json({ chains: this.chains });
    if (url.startsWith('/tierbar/v1/queue')) return Response.json(this.#queued(url));
    if (url.startsWith('/v1/queue/')) return this.#cancel(request);
    if (url.startsWith('/tierbar/v1/log')) return Response.json({ entries: this.#logged(url) });
    return this.#chats(request);
  }

  #logged(url: string): Entry[] {
    const query = new URL(url, 'http://host').searchParams;
    const before = Number(query.get('before') ?? Number.POSITIVE_INFINITY);
    const tier = query.get('tier');
    const entries = this.log.filter((entry) => entry.id < before && (tier === null || entry.tier === tier));
    return entries.slice(0, Number(query.get('limit')));
  }

  #queued(url: string) {
    const query = new URL(url, 'http://host').searchParams;
    const counts: Record<string, number> = {};
    for (const { state } of this.jobs) counts[state] = (counts[state] ?? 0) + 1;
    const jobs = this.jobs.filter(({ state }) => state === (query.get('state') ?? state));
    return { counts, bytes: 0, jobs: jobs.slice(0, Number(query.get('limit') ?? 100)) };
  }

  /** Cancels a request that has not ended; removes one that has. */
  #cancel({ path }: Sent): Response {
    const { pathname, searchParams } = new URL(path, 'http://host');
    const job = this.jobs.find(({ id }) => pathname === `/v1/queue/${id}`);
    if (!job) return refusal(404, 'not_found', 'there is no such queued request');
    if (job.state === 'waiting' || job.state === 'running') {
      job.state = 'cancelled';
      return Response.json(job);
    }
    if (searchParams.get('keep') === 'ended')
      return refusal(409, 'conflict', 'it has ended meanwhile, and is kept');
    this.jobs = this.jobs.filter((other) => other !== job);
    return new Response(null, { status: 204 });
  }

  #chats({ method, path, body }: Sent): Response {
    const [, id, messages] = path.match(/^\/tierbar\/v1\/chats(?:\/([^/]+)(\/messages)?)?$/) ?? [];
    if (id === undefined) {
      if (method === 'GET') return Response.json({ chats: this.chats.map(summary).reverse() });
      this.#ids += 1;
      const at = `2026-01-01T00:00:${String(this.#ids).padStart(2, '0')}Z`;
      const chat: StoredChat = {
        id: `c${this.#ids}`,
        title: '',
        model: body.model,
        created_at: at,
        updated_at: at,
        turn: null,
        messages: [],
      };
      this.chats.push(chat);
      return Response.json(summary(chat), { status: 201 });
    }
    const chat = this.chats.find((chat) => chat.id === id);
    if (!chat) return refusal(404, 'not_found', 'There is no such chat.');
    if (messages) {
      chat.messages.push(body);
      if (chat.title === '') chat.title = body.content;
      return Response.json(summary(chat), { status: 201 });
    }
    if (method === 'DELETE') {
      this.chats = this.chats.filter((other) => other !== chat);
      return new Response(null, { status: 204 });
    }
    if (method === 'PATCH') Object.assign(chat, body);
    if (method === 'PATCH') return Response.json(summary(chat));
    const read: Chat = {
      ...summary(chat),
      leaf: chat.messages.length || null,
      messages: chat.messages.map(({ content, ...message }, index) => ({
        ...message,
        id: index + 1,
        parent: index || null,
        parts: content === '' ? [] : [{ type: 'text', text: content }],
        why: null,
        instead_of: null,
      })),
    };
    return Response.json(read);
  }
}

/** A message as the page saves it. */
type Body = Omit<Message, 'key' | 'saved' | 'loadMs' | 'why' | 'insteadOf'>;
type StoredChat = ChatSummary & { messages: Body[] };

function summary({ messages: _, ...summary }: StoredChat): ChatSummary {
  return summary;
}

export function refusal(status: number, code: string, message: string, hint?: string): Response {
  return Response.json({ error: { message, type: 'x', param: null, code, hint } }, { status });
}

/** Waits until the condition holds, running pending tasks in between. */
export async function until(condition: () => unknown): Promise<void> {
  await vi.waitFor(
    () => {
      if (!condition()) throw new Error(`never came true: ${condition}`);
    },
    { timeout: 30_000, interval: 1 },
  );
}

export const STATUS: Status = {
  version: '0.1.0',
  url: 'http://127.0.0.1:11435',
  ram: { total_bytes: 16 * 2 ** 30, available_bytes: 9 * 2 ** 30, pressure: 'normal' },
  swap: { used_bytes: 0, growth_bytes_per_minute: 0 },
  speed: { decode_tokens_per_second: null, prefill_tokens_per_second: null },
  guard: { alarm: 'none', stance: 'open', why: null, paused_until: null },
  budget: { total_bytes: 12 * 2 ** 30, planned_bytes: 2 * 2 ** 30 },
  tiers: [
    {
      id: 'fast',
      state: 'stopped',
      engine: 'embedded',
      model: 'smol',
      pid: null,
      footprint_bytes: null,
      plan: null,
      context_tokens: 4096,
      loaded_percent: null,
      reason: null,
      unloads_at_ms: null,
      steps_down_to: null,
    },
    {
      id: 'primary',
      state: 'ready',
      engine: 'embedded',
      model: 'gemma',
      pid: 7,
      footprint_bytes: 2 ** 30,
      plan: {
        placement: 'resident',
        context_tokens: 8192,
        lines: [
          { what: 'dense_weights', bytes: 2 ** 30 },
          { what: 'kv_cache', bytes: 2 ** 29 },
          { what: 'compute_buffers', bytes: 2 ** 28 },
          { what: 'app', bytes: 2 ** 28 },
        ],
      },
      context_tokens: 8192,
      loaded_percent: null,
      reason: null,
      unloads_at_ms: null,
      steps_down_to: null,
    },
  ],
  downloads: [],
  models_revision: 0,
  notices: [],
};

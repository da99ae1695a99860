import { vi } from 'vitest';
import type {
  AnswerTimes,
  ChainStatus,
  Chat,
  ChatImport,
  ChatMessage,
  ChatSummary,
  ConsentAnswer,
  ContextUse,
  Costs,
  Entry,
  ExpertReads,
  Finish,
  GradeReport,
  History,
  JobStatus,
  LedgerReport,
  LeftOut,
  NewPart,
  PagingStatus,
  Part,
  Preset,
  RequestRecord,
  SetupPlan,
  Status,
  TurnBegun,
  TurnEvent,
} from '../platform/openapi';

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

/** A turn, as the host runs it: a test says what the model says. */
export class RunningTurn {
  readonly id: string;
  /** The request that began it. */
  readonly request: Sent;
  ended = false;
  text = '';
  reasoning = '';
  experts: ExpertReads | null = null;
  context: ContextUse | null = null;
  leftOut: LeftOut | null = null;
  /** What was answered to the agent's questions. */
  consents: ConsentAnswer[] = [];
  times: AnswerTimes | null = null;
  #tokens = 0;
  #chat: Chat;
  #question: ChatMessage;
  #answerId: number;
  #events: TurnEvent[] = [];
  #followers: Stream[] = [];

  constructor(
    id: string,
    request: Sent,
    chat: Chat,
    question: ChatMessage,
    answerId: number,
    continued?: ChatMessage,
  ) {
    this.id = id;
    this.request = request;
    this.#chat = chat;
    this.#question = question;
    this.#answerId = answerId;
    for (const part of continued?.parts ?? []) {
      if (part.type !== 'text') continue;
      this.text += part.text;
      this.event({ type: 'text', text: part.text, tokens: 0, decode_ms: 0 });
    }
    const why = 'it is a greeting; fast is loaded';
    this.event({ type: 'started', tier: 'fast', model: 'smol', why, instead_of: null });
    chat.messages.push({ ...this.#answer('stop', null), finish: null });
    chat.leaf = answerId;
  }

  /** The pages that follow it now. */
  get followers(): Stream[] {
    return this.#followers.filter((follower) => !follower.closed);
  }

  follow(request: Sent): Response {
    const stream = new Stream(request);
    const after = Number(new URL(request.path, 'http://host').searchParams.get('after'));
    this.#events.forEach((event, index) => {
      if (index >= after) stream.write(written(event, index + 1));
    });
    if (this.ended) stream.end();
    else this.#followers.push(stream);
    return stream.response;
  }

  consent(answer: ConsentAnswer): Response {
    this.consents.push(answer);
    this.event({ type: 'consent_answered', ...answer });
    return new Response(null, { status: 204 });
  }

  event(event: TurnEvent): void {
    this.#events.push(event);
    for (const follower of this.followers) follower.write(written(event, this.#events.length));
  }
  /** Each call is a token; `decodeMs` is the time since the first. */
  words(text: string, decodeMs = 0): void {
    this.text += text;
    this.#tokens += 1;
    this.event({ type: 'text', text, tokens: this.#tokens, decode_ms: decodeMs });
  }
  thoughts(text: string, decodeMs = 0): void {
    this.reasoning += text;
    this.#tokens += 1;
    this.event({ type: 'reasoning', text, tokens: this.#tokens, decode_ms: decodeMs });
  }
  loading(): void {
    this.event({ type: 'progress', stage: 'load' });
  }
  finish(finish: Finish, tokensPerSecond: number | null = null): void {
    const message = this.#answer(finish, tokensPerSecond);
    this.#store(message.parts.length > 0 || finish !== 'stopped' ? message : null);
    this.#end({ type: 'finished', message });
  }
  fail(
    code: string,
    message: string,
    hint: string | null = null,
    more: { tier?: string; retry_after_seconds?: number } = {},
  ): void {
    const failure = { code, message, hint };
    const answer = this.text === '' ? null : { ...this.#answer('error', null), failure };
    if (answer === null) this.#question.failure = failure;
    this.#store(answer);
    this.#end({
      type: 'failed',
      code,
      message,
      hint,
      tier: null,
      retry_after_seconds: null,
      answer,
      ...more,
    });
  }

  #answer(finish: Finish, tokensPerSecond: number | null): ChatMessage {
    const started = this.#events.findLast((event) => event.type === 'started');
    const { tier, model, why, instead_of } = started as Extract<TurnEvent, { type: 'started' }>;
    return {
      id: this.#answerId,
      parent: this.#question.id,
      role: 'assistant',
      parts: [
        ...this.#events.filter(({ type }) => type === 'tool_call' || type === 'tool_result'),
        ...(['reasoning', 'text'] as const)
          .filter((type) => this[type] !== '')
          .map((type) => ({ type, text: this[type] })),
      ] as ChatMessage['parts'],
      tier,
      model,
      why,
      instead_of,
      finish,
      decode_tokens_per_second: tokensPerSecond,
      time_to_first_token_ms: 7,
      times: this.times,
      experts: this.experts,
      context: this.context,
      left_out: this.leftOut,
    };
  }
  /** Puts the whole answer in the place of the unfinished one, or removes that. */
  #store(message: ChatMessage | null): void {
    const chat = this.#chat;
    chat.messages = chat.messages.filter(({ id }) => id !== this.#answerId);
    if (message) chat.messages.push(message);
    else if (chat.leaf === this.#answerId) chat.leaf = this.#question.id;
  }
  #end(event: TurnEvent): void {
    this.ended = true;
    this.#chat.turn = null;
    this.event(event);
    for (const follower of this.followers) follower.end();
  }
}

function written(event: TurnEvent, number: number): string {
  return `id: ${number}\ndata: ${JSON.stringify(event)}\n\n`;
}

/** A stand-in for the host: stores chats as the host does, and leaves streams to the test. */
export class Network {
  requests: Sent[] = [];
  chats: Chat[] = [];
  /** Chats that can be restored. */
  deleted: Chat[] = [];
  /** The answer to the next import. */
  imported: ChatImport = { chats: 0, messages: 0, known: 0, left_out: [] };
  /** The event log, newest first. */
  log: Entry[] = [];
  chains: ChainStatus[] = [];
  /** Queued requests, newest first. */
  jobs: JobStatus[] = [];
  paging: PagingStatus = { tiers: [], disk: null };
  presets: Preset[] = [];
  models: unknown[] = [];
  config: unknown = { config: { tiers: {}, contexts: { store: '' }, costs: {} } };
  /** The last requests, newest first. */
  recent: RequestRecord[] = [];
  costs: Costs = {
    days: [],
    total: { answers: 0, prompt_tokens: 0, completion_tokens: 0, saved_tokens: 0 },
  };
  ledger: LedgerReport = {
    entries: [],
    total: {
      requests: 0,
      prompt_tokens: 0,
      completion_tokens: 0,
      measured_joules: 0,
      estimated_joules: 0,
      electricity: null,
      paid: 0,
      cloud: null,
    },
    days: 0,
  };
  grades: GradeReport = {
    counts: { good: 0, bad: 0 },
    share: null,
    groups: [],
    routing: { levels: [], enough: 20, poor: 0.6, good: 0.8 },
  };
  history: History = { step_seconds: 1, points: [] };
  turns: RunningTurn[] = [];
  eventStreams: Stream[] = [];
  /** Answers a request instead of the defaults below; `null` lets it through. */
  override: (request: Sent) => Response | Promise<Response> | null = () => null;
  #ids = 0;

  /** Takes the place of `fetch`, unless a server passes requests on. */
  constructor({ served = false } = {}) {
    if (!served) vi.stubGlobal('fetch', (url: string, init: RequestInit = {}) => this.answer(url, init));
  }

  sent(method: string, path: string): Sent[] {
    return this.requests.filter((request) => request.method === method && request.path === path);
  }

  /** The messages of a chat that are whole. */
  messages(id: string): ChatMessage[] {
    const messages = this.chats.find((chat) => chat.id === id)?.messages ?? [];
    return messages.filter(({ role, finish }) => role !== 'assistant' || finish !== null);
  }

  async answer(url: string, init: RequestInit): Promise<Response> {
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
    if (url.endsWith('/tierbar/v1/events')) {
      const stream = new Stream(request);
      this.eventStreams.push(stream);
      return stream.response;
    }
    if (url.startsWith('/tierbar/v1/documents/text')) {
      const bytes = await (init.body as Blob).arrayBuffer();
      return Response.json({ text: new TextDecoder().decode(bytes), notice: null });
    }
    if (url.endsWith('/tierbar/v1/expect')) return new Response(null, { status: 204 });
    if (url.endsWith('/tierbar/v1/agent/folder')) return Response.json(request.body);
    if (url.endsWith('/tierbar/v1/chains')) return Response.json({ chains: this.chains });
    if (url.startsWith('/tierbar/v1/presets')) return this.#preset(request);
    if (url.endsWith('/tierbar/v1/models')) return Response.json({ models: this.models, folders: [] });
    if (url.endsWith('/tierbar/v1/config')) return Response.json(this.config);
    if (url.endsWith('/tierbar/v1/secrets')) return Response.json({ secrets: [] });
    if (url.startsWith('/v1/context')) return Response.json({ object: 'list', data: [] });
    if (url.startsWith('/tierbar/v1/requests')) return Response.json({ requests: this.#recent(url) });
    if (url.startsWith('/tierbar/v1/costs')) return Response.json(this.costs);
    if (url.startsWith('/tierbar/v1/ledger')) return Response.json(this.ledger);
    if (url.startsWith('/tierbar/v1/grades')) return this.#graded(request);
    if (url.startsWith('/tierbar/v1/history')) return Response.json(this.history);
    if (url.endsWith('/tierbar/v1/paging')) return Response.json(this.paging);
    if (url.startsWith('/tierbar/v1/queue')) return Response.json(this.#queued(url));
    if (url.startsWith('/v1/queue/')) return this.#cancel(request);
    if (url.startsWith('/tierbar/v1/log')) return Response.json({ entries: this.#logged(url) });
    if (url === '/tierbar/v1/setup') return Response.json(NO_PLAN);
    if (url === '/v1/context') return Response.json({ object: 'list', data: [] });
    if (url === '/tierbar/v1/models')
      return Response.json({ models_dir: '/data/models', disks: [], models: [] });
    return this.#chats(request);
  }

  #recent(url: string): RequestRecord[] {
    const after = Number(new URL(url, 'http://host').searchParams.get('after'));
    return this.recent.filter(({ id }) => id > after);
  }

  #logged(url: string): Entry[] {
    const query = new URL(url, 'http://host').searchParams;
    const before = Number(query.get('before') ?? Number.POSITIVE_INFINITY);
    const tier = query.get('tier');
    const kind = query.get('kind');
    const words = (query.get('words') ?? '').toLowerCase().split(' ');
    const entries = this.log.filter(
      (entry) =>
        entry.id < before &&
        (tier === null || entry.tier === tier) &&
        (kind === null || entry.kind === kind) &&
        words.every((word) => entry.sentence.toLowerCase().includes(word)),
    );
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

  #preset({ method, path, body }: Sent): Response {
    const name = decodeURIComponent(path.split('/')[4] ?? '');
    if (method === 'GET') return Response.json({ presets: this.presets });
    this.presets = this.presets.filter((preset) => preset.name !== name);
    if (method === 'DELETE') return new Response(null, { status: 204 });
    const preset: Preset = { name, built_in: false, settings: body };
    this.presets.push(preset);
    return Response.json(preset);
  }

  #graded({ path }: Sent): Response {
    if (path.startsWith('/tierbar/v1/grades/export')) return new Response('{}\n');
    if (!path.endsWith('/reset')) return Response.json(this.grades);
    const none = { good: 0, bad: 0 };
    const { routing } = this.grades;
    const levels = routing.levels.map(({ level }) => ({
      level,
      own_tier: none,
      smaller_tier: none,
      routed_as: level,
    }));
    this.grades = { ...this.grades, routing: { ...routing, levels } };
    return new Response(null, { status: 204 });
  }

  #chats(request: Sent): Response {
    const { method, path, body } = request;
    const { pathname, searchParams } = new URL(path, 'http://host');
    const words = searchParams.get('search');
    if (pathname === '/tierbar/v1/chats/import') return Response.json(this.imported);
    const graded = pathname.match(/^\/tierbar\/v1\/chats\/([^/]+)\/messages\/(\d+)\/grade$/);
    if (graded) {
      const chat = this.chats.find((chat) => chat.id === graded[1]);
      const answer = chat?.messages.find(({ id }) => id === Number(graded[2]));
      if (!answer) return refusal(404, 'not_found', 'There is no such message.');
      if (method === 'DELETE') delete answer.grade;
      else answer.grade = body;
      return method === 'DELETE' ? new Response(null, { status: 204 }) : Response.json(body);
    }
    const [, id, rest = '', turn, events] =
      pathname.match(
        /^\/tierbar\/v1\/chats(?:\/([^/]+)(\/(?:turns|restore|fork|export))?(?:\/([^/]+)(\/(?:events|consent))?)?)?$/,
      ) ?? [];
    if (id === undefined) {
      if (method === 'GET' && words !== null) {
        const chats = this.#found(words);
        return Response.json({ chats, total: chats.length });
      }
      if (method === 'GET') {
        const newest = this.chats.map(summary).reverse();
        const chats = [...newest.filter(({ pinned }) => pinned), ...newest.filter(({ pinned }) => !pinned)];
        const before = chats.findIndex(({ id }) => id === searchParams.get('before'));
        const limit = Number(searchParams.get('limit') ?? chats.length);
        return Response.json({ chats: chats.slice(before + 1, before + 1 + limit), total: chats.length });
      }
      this.#ids += 1;
      const at = `2026-01-01T00:00:${String(this.#ids).padStart(2, '0')}Z`;
      const chat: Chat = {
        id: `c${this.#ids}`,
        title: '',
        model: body.model,
        created_at: at,
        updated_at: at,
        when_full: body.when_full ?? 'refuse',
        instructions: body.instructions ?? '',
        sampling: body.sampling ?? {},
        thinking: body.thinking ?? null,
        pinned: false,
        turn: null,
        leaf: null,
        messages: [],
      };
      this.chats.push(chat);
      return Response.json(summary(chat), { status: 201 });
    }
    if (rest === '/restore') {
      this.chats.push(...this.deleted.filter((chat) => chat.id === id));
      this.deleted = this.deleted.filter((chat) => chat.id !== id);
    }
    const chat = this.chats.find((chat) => chat.id === id);
    if (!chat) return refusal(404, 'not_found', 'There is no such chat.');
    if (rest === '/restore') return Response.json(summary(chat));
    if (rest === '/export') return new Response(`# ${chat.title}\n`);
    if (rest === '/fork') return this.#fork(chat, body.message);
    if (turn !== undefined) {
      const running = this.turns.find(({ id }) => id === turn);
      if (!running) return refusal(404, 'not_found', 'This turn is not running.');
      if (events === '/consent') return running.consent(body);
      if (events) return running.follow(request);
      if (!running.ended) running.finish('stopped');
      return new Response(null, { status: 204 });
    }
    if (rest === '/turns') return this.#begin(chat, request);
    if (method === 'DELETE') {
      const running = this.turns.find(({ id }) => id === chat.turn);
      running?.finish('stopped');
      this.chats = this.chats.filter((other) => other !== chat);
      this.deleted.push(chat);
      return new Response(null, { status: 204 });
    }
    if (method === 'PATCH') Object.assign(chat, body);
    return Response.json(method === 'PATCH' ? summary(chat) : chat);
  }

  #found(words: string): ChatSummary[] {
    const has = (text: string) => text.toLowerCase().includes(words.toLowerCase());
    const text = ({ parts }: ChatMessage) => parts.map((part) => ('text' in part ? part.text : '')).join('');
    return this.chats.flatMap((chat) => {
      const hit = chat.messages.findLast((message) => has(text(message)));
      if (!hit && !has(chat.title)) return [];
      return [{ ...summary(chat), found: { message: hit?.id ?? null, excerpt: hit ? text(hit) : '' } }];
    });
  }

  #fork(chat: Chat, last: number): Response {
    this.#ids += 1;
    const end = chat.messages.findIndex(({ id }) => id === last);
    const fork: Chat = {
      ...chat,
      id: `c${this.#ids}`,
      leaf: last,
      messages: chat.messages.slice(0, end + 1),
    };
    this.chats.push(fork);
    return Response.json(summary(fork), { status: 201 });
  }

  #begin(chat: Chat, request: Sent): Response {
    const { text, parent, when_full, continue: continues } = request.body;
    if (chat.turn !== null) return refusal(409, 'conflict', 'This chat is answering another question.');
    this.#ids += 2;
    if (when_full) chat.when_full = when_full;
    let question: ChatMessage | undefined;
    const continued = continues ? chat.messages.find(({ id }) => id === parent) : undefined;
    if (text !== undefined) {
      question = message(this.#ids - 1, parent === undefined ? chat.leaf : parent, text);
      const stored = (part: NewPart) => {
        const all = chat.messages.flatMap(({ parts }) => parts);
        return all.find((other) => 'file' in other && 'sha256' in part && other.file.sha256 === part.sha256);
      };
      const files = (request.body.parts ?? []).map((part: NewPart) => stored(part) ?? fileOf(part));
      question.parts.unshift(...files);
      chat.messages.push(question);
      if (chat.title === '') chat.title = text;
    } else {
      const from = chat.messages.find(({ id }) => id === (parent ?? chat.leaf));
      question = from?.role === 'assistant' ? chat.messages.find(({ id }) => id === from.parent) : from;
    }
    if (!question) return refusal(400, 'bad_request', 'There is no question to answer.');
    const answer = continued?.id ?? this.#ids;
    chat.messages = chat.messages.filter((message) => message !== continued);
    const turn = new RunningTurn(`t${this.#ids}`, request, chat, question, answer, continued);
    this.turns.push(turn);
    chat.turn = turn.id;
    const begun: TurnBegun = { id: turn.id, chat: summary(chat), question, answer };
    return Response.json(begun, { status: 201 });
  }
}

function fileOf(part: NewPart): Part {
  if (part.type === 'stored') throw new Error('no message has this file');
  const { type, name, media_type } = part;
  const bytes = part.type === 'file' ? part.text.length : part.data.length;
  return { type, file: { sha256: `h-${name}`, media_type, name, bytes } };
}

function message(id: number, parent: number | null, text: string): ChatMessage {
  return {
    id,
    parent,
    role: 'user',
    parts: text === '' ? [] : [{ type: 'text', text }],
    tier: null,
    model: null,
    why: null,
    instead_of: null,
    finish: null,
    decode_tokens_per_second: null,
    time_to_first_token_ms: null,
    times: null,
    experts: null,
    context: null,
    left_out: null,
  };
}

function summary({ messages: _messages, leaf: _leaf, ...summary }: Chat): ChatSummary {
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

const NO_PLAN: SetupPlan = {
  machine: {
    ram_bytes: 16 * 2 ** 30,
    budget_bytes: 12 * 2 ** 30,
    others_bytes: null,
    gpu_bytes: null,
    memory_bytes_per_second: null,
    disk_bytes_per_second: null,
    disk_free_bytes: null,
  },
  tiers: [],
  first: null,
  download_bytes: 0,
  models_dir: '/data/models',
  room: null,
  notes: [],
};

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
      is_starter: false,
      aliases: [],
      kind: 'chat',
      pid: null,
      footprint_bytes: null,
      plan: null,
      context_tokens: 4096,
      kv_cache: 'f16',
      input_modalities: ['text'],
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
      is_starter: false,
      aliases: [],
      kind: 'chat',
      pid: 7,
      footprint_bytes: 2 ** 30,
      plan: {
        placement: 'resident',
        context_tokens: 8192,
        kind: 'generative',
        lines: [
          { what: 'dense_weights', bytes: 2 ** 30 },
          { what: 'kv_cache', bytes: 2 ** 29 },
          { what: 'compute_buffers', bytes: 2 ** 28 },
          { what: 'app', bytes: 2 ** 28 },
        ],
      },
      context_tokens: 8192,
      kv_cache: 'f16',
      input_modalities: ['text'],
      loaded_percent: null,
      reason: null,
      unloads_at_ms: null,
      steps_down_to: null,
    },
  ],
  downloads: [],
  models_revision: 0,
  config_revision: 0,
  notices: [],
  notifications: [],
  refused_origins: [],
};

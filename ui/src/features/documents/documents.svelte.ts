import { type Api, ApiError, asApiError } from '../../lib/http';
import { readSse } from '../../lib/sse';
import type { DocumentAnswer, DocumentEvent, DocumentFile, Documents, Passage } from '../../platform/openapi';

/** What is asked, and where to look. */
export interface Question {
  question: string;
  /** '' for all of them. */
  collection: string;
}

/** The documents that are searched, and the question that is being answered from them. */
export class DocumentStore {
  documents = $state.raw<Documents | null>(null);
  problem = $state.raw<ApiError | null>(null);
  asking = $state(false);
  /** The answer as it arrives. */
  text = $state('');
  /** Which part of a long document is being read. */
  part = $state.raw<{ part: number; parts: number } | null>(null);
  answer = $state.raw<DocumentAnswer | null>(null);
  /** The passages that the model was given, the best first. */
  found = $state.raw<Passage[]>([]);
  unanswered = $state.raw<ApiError | null>(null);
  #api: Api;
  #stop: AbortController | null = null;

  constructor(api: Api) {
    this.#api = api;
  }

  /** The names of the collections. */
  get collections(): string[] {
    return [...new Set((this.documents?.sources ?? []).map(({ collection }) => collection))];
  }

  async load(): Promise<void> {
    try {
      this.documents = await this.#api.get('/tierbar/v1/documents');
      this.problem = null;
    } catch (cause) {
      this.problem = asApiError(cause);
    }
  }

  /** Throws what keeps it from being added. */
  async add(path: string, collection: string): Promise<void> {
    await this.#api.post('/tierbar/v1/documents', { body: { path, collection: collection || null } });
    await this.load();
  }

  async remove(source: number): Promise<void> {
    await this.#try(() => this.#api.delete('/tierbar/v1/documents/{source}', { path: { source } }));
  }

  /** Has a model read the pages of a source that are pictures, or no longer. Throws what keeps it from doing so. */
  async readPictures(source: number, on: boolean): Promise<void> {
    this.documents = await this.#api.patch('/tierbar/v1/documents/{source}', {
      path: { source },
      body: { read_pictures: on },
    });
  }

  async setPaused(paused: boolean): Promise<void> {
    await this.#try(() => this.#api.patch('/tierbar/v1/documents', { body: { paused } }));
  }

  async #try(call: () => Promise<unknown>): Promise<void> {
    try {
      await call();
      await this.load();
    } catch (cause) {
      this.problem = asApiError(cause);
    }
  }

  /** The files of a source that cannot be read, or of which something is missing. */
  async notices(source: number): Promise<DocumentFile[]> {
    const found: DocumentFile[] = [];
    let after = 0;
    for (;;) {
      const { files } = await this.#api.get('/tierbar/v1/documents/{source}/files', {
        path: { source },
        query: { after },
      });
      const last = files.at(-1);
      if (!last) return found;
      found.push(...files.filter(({ notice }) => notice !== null));
      after = last.id;
    }
  }

  /** A passage with those before and behind it. */
  async around(passage: number): Promise<Passage[]> {
    const { passages } = await this.#api.get('/tierbar/v1/passages/{id}', { path: { id: passage } });
    return passages;
  }

  async ask({ question, collection }: Question): Promise<void> {
    this.stop();
    const stop = new AbortController();
    this.#stop = stop;
    this.asking = true;
    this.text = '';
    this.part = null;
    this.answer = null;
    this.found = [];
    this.unanswered = null;
    try {
      const response = await this.#api.stream('post', '/v1/documents/ask', {
        body: { question, collection: collection || null, stream: true },
        signal: stop.signal,
      });
      if (response.body) await this.#follow(response.body);
      if (!this.answer) throw new ApiError('unreachable', 'the connection ended', 'ask again');
    } catch (cause) {
      if (!stop.signal.aborted) this.unanswered = asApiError(cause);
    } finally {
      if (this.#stop === stop) {
        this.asking = false;
        this.#stop = null;
      }
    }
  }

  stop(): void {
    this.#stop?.abort();
    this.#stop = null;
    this.asking = false;
  }

  async #follow(body: ReadableStream<Uint8Array>): Promise<void> {
    for await (const item of readSse(body)) {
      if (!('data' in item)) continue;
      const event = JSON.parse(item.data) as DocumentEvent;
      if (event.type === 'text') this.text += event.text;
      else if (event.type === 'part') this.part = event;
      else if (event.type === 'passages') this.found = event.passages;
      else if (event.type === 'answer') {
        this.answer = event.answer;
        return;
      } else if (event.type === 'error') throw new ApiError(event.code, event.message, event.hint);
    }
  }
}

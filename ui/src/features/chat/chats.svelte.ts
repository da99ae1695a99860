import { type ApiError, asApiError, ConnectionError } from '../../lib/http';
import type { ChatSummary } from '../../platform/openapi';
import { Conversation, type Surroundings } from './conversation.svelte';

/** Owns the chat history and the conversations that are open on this page. */
export class Chats {
  /** Newest first. */
  list = $state.raw<ChatSummary[]>([]);
  problem = $state.raw<ApiError | null>(null);
  current: Conversation = $state.raw() as Conversation;

  #around: Surroundings;
  /** Conversations keep their draft and their stream while another one is shown. */
  #open = new Map<string, Conversation>();
  /** The new chat that has no message yet. */
  #blank: Conversation;
  /** The chats may have changed since their last read began. */
  #stale = false;
  #reading: Promise<void> | null = null;

  constructor(around: Omit<Surroundings, 'onSummary'>) {
    this.#around = { ...around, onSummary: (summary) => this.#upsert(summary) };
    this.#blank = new Conversation(this.#around);
    this.current = this.#blank;
  }

  /** Reads the chats. A call while they are being read leads to one more read, so that the last one is the newest. */
  refresh(): Promise<void> {
    this.#stale = true;
    this.#reading ??= this.#readWhileStale();
    return this.#reading;
  }

  async #readWhileStale(): Promise<void> {
    while (this.#stale) {
      this.#stale = false;
      await this.#read();
    }
    this.#reading = null;
  }

  async #read(): Promise<void> {
    try {
      const { chats } = await this.#around.api.get('/tierbar/v1/chats');
      this.list = chats;
      this.problem = null;
      const { current } = this;
      const { id } = current;
      if (current.problem instanceof ConnectionError) return await current.recover();
      if (id === null) return;
      const summary = chats.find((chat) => chat.id === id);
      if (current.problem && current.messages.length === 0) await current.open(id);
      else if (summary) await current.sync(summary);
    } catch (cause) {
      // A banner says that the connection is lost.
      this.problem = cause instanceof ConnectionError ? null : asApiError(cause);
    }
  }

  startNew(): void {
    this.#file();
    if (this.#blank.messages.length === 0) this.#blank.model = this.current.model;
    this.current = this.#blank;
  }

  async open(id: string): Promise<void> {
    this.#file();
    const known = this.#open.get(id);
    const conversation = known ?? new Conversation(this.#around);
    this.#open.set(id, conversation);
    this.current = conversation;
    const summary = this.list.find((chat) => chat.id === id);
    if (!known || (conversation.problem && conversation.messages.length === 0)) await conversation.open(id);
    // Only the conversation that is shown follows what others do in it.
    else if (summary) await conversation.sync(summary);
  }

  isBusy(id: string): boolean {
    const here = this.#blank.id === id ? this.#blank.busy : this.#open.get(id)?.busy;
    return here || this.list.some((chat) => chat.id === id && chat.turn !== null);
  }

  async rename(id: string, title: string): Promise<void> {
    await this.#try(async () => {
      const { api } = this.#around;
      this.#upsert(await api.patch('/tierbar/v1/chats/{id}', { path: { id }, body: { title } }));
    });
  }

  async remove(id: string): Promise<void> {
    await this.#try(async () => {
      this.#file();
      await this.#around.api.delete('/tierbar/v1/chats/{id}', { path: { id } });
      this.#open.get(id)?.leave();
      this.list = this.list.filter((chat) => chat.id !== id);
      this.#open.delete(id);
      if (this.current.id === id) this.startNew();
    });
  }

  /** The page goes away. Turns run on in the host. */
  leave(): void {
    this.#blank.leave();
    for (const conversation of this.#open.values()) conversation.leave();
  }

  /** A new chat that has been given its id joins the others. */
  #file(): void {
    if (this.#blank.id === null) return;
    this.#open.set(this.#blank.id, this.#blank);
    this.#blank = new Conversation(this.#around);
  }

  #upsert(summary: ChatSummary): void {
    const others = this.list.filter((chat) => chat.id !== summary.id);
    this.list = [summary, ...others].sort((a, b) => Date.parse(b.updated_at) - Date.parse(a.updated_at));
  }

  async #try(call: () => Promise<void>): Promise<void> {
    this.problem = null;
    try {
      await call();
    } catch (cause) {
      this.problem = asApiError(cause);
    }
  }
}

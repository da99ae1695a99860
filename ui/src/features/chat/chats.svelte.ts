import { ApiError, asApiError, ConnectionError } from '../../lib/http';
import type { ChatImport, ChatSummary } from '../../platform/openapi';
import { Conversation, type Surroundings } from './conversation.svelte';
import { patternsOfSearch } from './words';

/** How long a deletion can be undone here. The host allows it for longer. */
const UNDO_MS = 10_000;
/** So many chats are read at a time. */
const PAGE = 200;
/** So long after the last key a search begins. */
const TYPING_MS = 150;

/** What has just been done. */
export interface Done {
  text: string;
  /** The chat that was deleted, and whether it was shown. */
  deleted?: { id: string; shown: boolean };
}

/** What an import of files has brought. */
export interface Imported extends ChatImport {
  /** The files that were not imported, and why. */
  refused: { file: string; why: string }[];
}

/** Owns the chat history and the conversations that are open on this page. */
export class Chats {
  /** Those that have been read: pinned ones first, then newest first. */
  list = $state.raw<ChatSummary[]>([]);
  /** How many chats there are. */
  total = $state(0);
  /** Whether there are older ones to read. */
  hasMore = $state(false);
  /** The words that are searched; without any, all chats are shown. */
  words = $state('');
  /** What the last search has found. */
  found = $state.raw<ChatSummary[] | null>(null);
  /** What is shown for a while. */
  done = $state.raw<Done | null>(null);
  importing = $state(false);
  /** The last import, until it has been read. */
  imported = $state.raw<Imported | null>(null);
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
  /** The chat that the next page follows: up to it, the list has no gaps. */
  #end: string | null = null;
  #paging = false;
  #typing: ReturnType<typeof setTimeout> | undefined;
  #doneTimer: ReturnType<typeof setTimeout> | undefined;

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
      const query = { limit: PAGE };
      const { chats, total } = await this.#around.api.get('/tierbar/v1/chats', { query });
      this.#takeFirst(chats, total);
      this.problem = null;
      if (this.words.trim() !== '') void this.#search();
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

  /** Takes the first page of the list, and keeps what was read below it, unless that may have changed. */
  #takeFirst(page: ChatSummary[], total: number): void {
    const ids = new Set(page.map(({ id }) => id));
    const last = page.at(-1);
    const at = this.list.findIndex(({ id }) => id === last?.id);
    const below = at < 0 ? [] : this.list.slice(at + 1).filter(({ id }) => !ids.has(id));
    const hasAll = page.length < PAGE;
    const isWhole = !this.hasMore && this.#end !== null;
    if (
      hasAll ||
      last === undefined ||
      below.length === 0 ||
      (isWhole && page.length + below.length !== total)
    ) {
      this.list = page;
      this.hasMore = !hasAll;
      this.#end = last?.id ?? null;
    } else this.list = [...page, ...below];
    this.total = total;
  }

  /** Reads the next page of the list. */
  async more(): Promise<void> {
    const before = this.#end;
    if (!this.hasMore || this.#paging || before === null) return;
    this.#paging = true;
    try {
      const query = { limit: PAGE, before };
      const { chats, total } = await this.#around.api.get('/tierbar/v1/chats', { query });
      // A first page that was read meanwhile begins anew.
      if (this.#end !== before) return;
      const ids = new Set(chats.map(({ id }) => id));
      this.list = inOrder([...this.list.filter(({ id }) => !ids.has(id)), ...chats]);
      this.total = total;
      this.hasMore = chats.length === PAGE;
      this.#end = chats.at(-1)?.id ?? before;
    } catch (cause) {
      // The chat was erased meanwhile.
      if (asApiError(cause).status === 404) {
        this.#end = null;
        void this.refresh();
      } else if (!(cause instanceof ConnectionError)) this.problem = asApiError(cause);
    } finally {
      this.#paging = false;
    }
  }

  /** Opens a chat at the message in which a search has found its words. */
  async openFound(id: string): Promise<void> {
    const message = this.found?.find((chat) => chat.id === id)?.found?.message ?? null;
    const patterns = patternsOfSearch(this.words);
    await this.open(id);
    const { current } = this;
    if (message !== null && current.id === id) current.reveal(message, patterns);
  }

  startNew(): void {
    this.#file();
    if (this.current === this.#blank && !this.#blank.busy && this.#blank.messages.length > 0)
      this.#replaceRefused();
    if (this.#blank.messages.length === 0) this.#blank.model = this.current.model;
    this.current = this.#blank;
  }

  /** Its first message was refused, so that no chat has it: it is the next one's draft. */
  #replaceRefused(): void {
    const { draft, files, messages } = this.#blank;
    this.#blank = new Conversation(this.#around);
    const lost = messages.filter(({ role }) => role === 'user');
    this.#blank.draft = [...lost.map(({ content }) => content), draft]
      .filter((text) => text !== '')
      .join('\n\n');
    this.#blank.files = [...lost.flatMap(({ files }) => files), ...files];
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

  /** Whether something is typed, or an answer streams, that a reload of the page would take away. */
  get unsaved(): boolean {
    const open = [this.#blank, ...this.#open.values()];
    return open.some(({ draft, files, busy }) => draft !== '' || files.length > 0 || busy);
  }

  async rename(id: string, title: string): Promise<void> {
    await this.#try(async () => {
      const { api } = this.#around;
      this.#upsert(await api.patch('/tierbar/v1/chats/{id}', { path: { id }, body: { title } }));
    });
  }

  async pin(id: string, pinned: boolean): Promise<void> {
    await this.#try(async () => {
      const { api } = this.#around;
      this.#upsert(await api.patch('/tierbar/v1/chats/{id}', { path: { id }, body: { pinned } }));
    });
  }

  /** Deletes a chat, which can be undone for a while. */
  async remove(id: string): Promise<void> {
    await this.#try(async () => {
      this.#file();
      const title = this.list.find((chat) => chat.id === id)?.title;
      const shown = this.current.id === id;
      await this.#around.api.delete('/tierbar/v1/chats/{id}', { path: { id } });
      this.#open.get(id)?.leave();
      const others = (chats: ChatSummary[]) => chats.filter((chat) => chat.id !== id);
      this.list = others(this.list);
      this.total = Math.max(this.total - 1, this.list.length);
      if (this.#end === id) this.#end = this.list.at(-1)?.id ?? null;
      if (this.found) this.found = others(this.found);
      this.#open.delete(id);
      if (this.current.id === id) this.startNew();
      this.note({ text: `Deleted “${title || 'New Chat'}”.`, deleted: { id, shown } });
    });
  }

  async undo(): Promise<void> {
    const deleted = this.done?.deleted;
    if (!deleted) return;
    this.dismiss();
    await this.#try(async () => {
      const path = { id: deleted.id };
      this.#upsert(await this.#around.api.post('/tierbar/v1/chats/{id}/restore', { path }));
      if (this.words.trim() !== '') void this.#search();
      if (deleted.shown && this.current.id === null) await this.open(deleted.id);
    });
  }

  /** Says what has been done, for a while. */
  note(done: Done): void {
    this.done = done;
    this.release();
  }

  /** Keeps it shown while it is used. */
  hold(): void {
    clearTimeout(this.#doneTimer);
  }

  release(): void {
    this.hold();
    this.#doneTimer = setTimeout(() => this.dismiss(), UNDO_MS);
  }

  dismiss(): void {
    clearTimeout(this.#doneTimer);
    this.done = null;
  }

  /** Opens a new chat with the branch up to this message. */
  async fork(message: number): Promise<void> {
    const { id } = this.current;
    if (id === null) return;
    await this.#try(async () => {
      const { api } = this.#around;
      const chat = await api.post('/tierbar/v1/chats/{id}/fork', { path: { id }, body: { message } });
      this.#upsert(chat);
      await this.open(chat.id);
      this.note({ text: 'This new chat has the messages up to that point.' });
      if (chat.title === '') return;
      const body = { title: `${chat.title} (branch)` };
      this.#upsert(await api.patch('/tierbar/v1/chats/{id}', { path: { id: chat.id }, body }));
    });
  }

  /** The chat as a file; `null` if that failed. */
  async export(id: string, format: 'markdown' | 'json'): Promise<Blob | null> {
    let file: Blob | null = null;
    await this.#try(async () => {
      const path = '/tierbar/v1/chats/{id}/export';
      file = await this.#around.api.download(path, { path: { id }, query: { format } });
    });
    return file;
  }

  /** Adds the chats of files, one file after the other. One that is refused keeps no other from being read. */
  async import(files: File[]): Promise<void> {
    if (this.importing) return;
    this.importing = true;
    this.problem = null;
    const sum: Imported = { chats: 0, messages: 0, known: 0, left_out: [], refused: [] };
    let problem: ApiError | null = null;
    for (const file of files) {
      try {
        add(sum, await this.#around.api.upload('/tierbar/v1/chats/import', file));
      } catch (cause) {
        const { code, message, hint, status, sentences } = asApiError(cause);
        problem = new ApiError(code, `“${file.name}” was not imported: ${message}`, hint, status);
        sum.refused.push({ file: file.name, why: sentences });
      }
    }
    this.importing = false;
    // One file that is refused needs no report.
    const isAlone = files.length === 1 && problem !== null;
    if (!isAlone) this.imported = sum;
    await this.refresh();
    if (isAlone) this.problem ??= problem;
  }

  /** Searches once the user pauses typing. */
  search(words: string): void {
    this.words = words;
    clearTimeout(this.#typing);
    if (words.trim() === '') this.found = null;
    else this.#typing = setTimeout(() => void this.#search(), TYPING_MS);
  }

  /** The chats that have these words, for another list than this one; none if the host does not answer. */
  async find(words: string): Promise<ChatSummary[]> {
    try {
      const { chats } = await this.#around.api.get('/tierbar/v1/chats', { query: { search: words } });
      return chats;
    } catch {
      return [];
    }
  }

  async #search(): Promise<void> {
    const { words } = this;
    try {
      const { chats } = await this.#around.api.get('/tierbar/v1/chats', { query: { search: words } });
      if (this.words === words) this.found = chats;
    } catch (cause) {
      if (this.words === words) this.problem = asApiError(cause);
    }
  }

  /** The page goes away. Turns run on in the host. */
  leave(): void {
    clearTimeout(this.#typing);
    clearTimeout(this.#doneTimer);
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
    if (others.length === this.list.length) this.total = Math.max(this.total, others.length + 1);
    const before = this.list.find((chat) => chat.id === summary.id);
    const stays = before?.updated_at === summary.updated_at && before.pinned === summary.pinned;
    this.list = stays
      ? this.list.map((chat) => (chat === before ? summary : chat))
      : inOrder([summary, ...others]);
    const { found } = this;
    if (found)
      this.found = found.map((chat) => (chat.id === summary.id ? { ...summary, found: chat.found } : chat));
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

function inOrder(chats: ChatSummary[]): ChatSummary[] {
  const rank = ({ pinned }: ChatSummary) => Number(pinned);
  // Times are written so that they sort as text.
  const later = (a: string, b: string) => (a < b ? 1 : a > b ? -1 : 0);
  return chats.sort((a, b) => rank(b) - rank(a) || later(a.updated_at, b.updated_at));
}

function add(sum: ChatImport, more: ChatImport): void {
  sum.chats += more.chats;
  sum.messages += more.messages;
  sum.known += more.known;
  for (const omission of more.left_out) {
    const same = sum.left_out.find(({ what }) => what === omission.what);
    if (same) same.count += omission.count;
    else sum.left_out.push({ ...omission });
  }
}

// One file: all that a page does to a chat changes the same few fields, and whether it may depends on the turn that is followed.

import { type Api, ApiError, after, asApiError, ConnectionError } from '../../lib/http';
import type {
  AnswerSettings,
  Chat,
  ChatSummary,
  ConsentScope,
  Grade,
  TurnBegun,
  WhenFull,
} from '../../platform/openapi';
import { AUTO, displayName } from '../tiers/tiers';
import { type AgentReach, agentOptions } from './agent';
import type { QuestionFile } from './files';
import { followTurn } from './follow';
import { advance, beginAnswer, type Ending, type LiveAnswer } from './live';
import { NO_SETTINGS } from './presets.svelte';
import { branchOf, lastBelow, type Message, shownMessage, turnsOf, unsent } from './turns';

/** An answer that is being written is painted at most this often: each paint costs, and more words at once read as smoothly. */
const PAINT_MS = 30;

/** How one answer differs from the chat's. */
export interface AnswerChoice {
  /** What answers, this time alone. */
  model?: string;
  /** Holds for the chat from then on. */
  whenFull?: WhenFull;
  /** An answer to carry on, in place of a new one. */
  continued?: Message;
}

/** A message to show, and what to mark in it. */
export interface Revealed {
  message: number;
  patterns: RegExp[];
}

/** What a conversation needs from the page around it. */
export interface Surroundings {
  api: Api;
  /** The chat was made or changed on the host. */
  onSummary(summary: ChatSummary): void;
}

/** A view of one chat: its messages and the turn that the host runs. Any number of pages may show the same chat. */
export class Conversation {
  /** `null` until the first message is sent. */
  id = $state<string | null>(null);
  model = $state(AUTO);
  /** What happens once the context does not hold the chat. */
  whenFull = $state<WhenFull>('refuse');
  /** What each answer follows. */
  settings = $state.raw<AnswerSettings>(NO_SETTINGS);
  draft = $state('');
  /** The files that go with the draft. */
  files = $state.raw<QuestionFile[]>([]);
  /** The folder in which the model may act, and asks first; `null` if it only answers. */
  agent = $state<string | null>(null);
  /** What it may use beside its folder. */
  reach = $state<AgentReach>({ documents: false, web: '', address: '' });
  /** The question that the draft replaces once it is sent. */
  editing = $state.raw<Message | null>(null);
  /** All branches, oldest first; a question on its way to the host is the last. */
  messages = $state.raw<Message[]>([]);
  /** The last message of the branch that is shown. */
  leaf = $state<number | null>(null);
  live = $state.raw<LiveAnswer | null>(null);
  /** From sending until the answer is whole. */
  busy = $state(false);
  problem = $state.raw<ApiError | null>(null);
  /** The messages are being fetched. */
  opening = $state(false);
  /** What a search has found. */
  revealed = $state.raw<Revealed | null>(null);
  turns = $derived(turnsOf(this.messages, this.leaf));
  /** How much of its context the last answer has used. */
  context = $derived(this.turns.findLast(({ shown }) => shown?.context)?.shown?.context ?? null);

  #around: Surroundings;
  /** The turn that is being followed. */
  #turn: string | null = null;
  /** Ends the following, not the turn. */
  #leave = new AbortController();
  /** The user wants the answer to end, also one that has not begun. */
  #stopped = false;
  /** The draft that an edited question has taken the place of. */
  #aside: { draft: string; files: QuestionFile[] } = { draft: '', files: [] };
  /** The chat as the host last described it. */
  #summary: ChatSummary | null = null;

  constructor(around: Surroundings) {
    this.#around = around;
  }

  async open(id: string): Promise<void> {
    this.id = id;
    this.opening = true;
    this.problem = null;
    try {
      await this.#read();
    } catch (cause) {
      this.problem = asApiError(cause);
    } finally {
      this.opening = false;
    }
  }

  /** Reads the chat once the host is back, and sends a question again that did not reach it. */
  async recover(): Promise<void> {
    if (this.busy || this.opening) return;
    const question = this.messages.find(({ id }) => id === null);
    const known = this.messages.map(({ id }) => id);
    if (this.id !== null) await this.open(this.id);
    else this.problem = null;
    if (question === undefined || this.problem !== null || this.busy) return;
    // The host may have stored it just before it ended.
    const stored = this.messages.some(
      ({ id, role, content }) => role === 'user' && content === question.content && !known.includes(id),
    );
    if (stored) return;
    this.messages = [...this.messages.filter(({ id }) => id !== null), { ...question, parent: this.leaf }];
    await this.answer();
  }

  /** Takes over what another page has changed, and joins the turn that it has begun. An error stays until then. */
  async sync(summary: ChatSummary): Promise<void> {
    if (this.busy || this.opening || !this.#isNews(summary)) return;
    const before = this.#summary;
    try {
      const chat = await this.#fetch();
      // What happened here meanwhile is newer than what was read, and the list may be older than the chat.
      if (this.busy || this.#summary !== before || !this.#isNews(chat)) return;
      this.problem = null;
      // A question that did not reach the host is not lost.
      const unsent = this.messages.find(({ id }) => id === null);
      if (unsent) {
        this.draft = [unsent.content, this.draft].filter((text) => text !== '').join('\n\n');
        this.files = [...unsent.files, ...this.files];
      }
      this.#take(chat);
    } catch {
      // The next look may succeed.
    }
  }

  #isNews({ turn, updated_at }: ChatSummary): boolean {
    return turn !== null || updated_at !== this.#summary?.updated_at;
  }

  /** Shows a message, with its branch. */
  reveal(message: number, patterns: RegExp[]): void {
    if (!this.messages.some(({ id }) => id === message)) return;
    const isShown = branchOf(this.messages, this.leaf).some(({ id }) => id === message);
    if (!isShown && this.busy) return;
    // Only here: what is shown elsewhere does not change because something was found.
    if (!isShown) this.leaf = lastBelow(this.messages, message);
    this.revealed = { message, patterns };
  }

  async choose(model: string): Promise<void> {
    this.model = model;
    if (this.id === null) return;
    try {
      this.#note(await this.#patch({ model }));
    } catch (cause) {
      this.problem = asApiError(cause);
    }
  }

  /** Decides, from now on, what happens once the context does not hold the chat. */
  async chooseWhenFull(whenFull: WhenFull): Promise<void> {
    if (this.id === null) return;
    try {
      this.#note(await this.#patch({ when_full: whenFull }));
    } catch (cause) {
      this.problem = asApiError(cause);
    }
  }

  /** Sets what the next answers follow. Returns why that was refused. */
  async set(fields: Partial<AnswerSettings>): Promise<ApiError | null> {
    const before = this.settings;
    // At once, so that the next change begins from it.
    this.settings = { ...before, ...fields };
    if (this.id === null) return null;
    try {
      this.#note(await this.#patch(fields));
      return null;
    } catch (cause) {
      this.settings = before;
      return asApiError(cause);
    }
  }

  /** Undoes what the agent of an answer changed in files. Returns their names, or why it was refused. */
  async undo(answer: Message, force: boolean): Promise<string[] | ApiError> {
    try {
      const { api } = this.#around;
      const { runs } = await api.get('/tierbar/v1/agent/runs');
      const run = runs.find(({ chat, message }) => chat === this.id && message === answer.id);
      // Of one that is gone, the host says why.
      const path = { run: run?.id ?? String(answer.id) };
      return (await api.post('/tierbar/v1/agent/runs/{run}/undo', { path, body: { force } })).files;
    } catch (cause) {
      return asApiError(cause);
    }
  }

  /** Grades an answer, or removes its grade. Returns why that was refused. */
  async grade(answer: Message, grade: Grade | null): Promise<ApiError | null> {
    if (this.id === null || answer.id === null) return null;
    const path = { id: this.id, message: answer.id };
    const show = (shown: Grade | null) => {
      this.messages = this.messages.map((message) =>
        message.id === answer.id ? { ...message, grade: shown } : message,
      );
    };
    const before = answer.grade ?? null;
    show(grade);
    try {
      if (grade === null)
        await this.#around.api.delete('/tierbar/v1/chats/{id}/messages/{message}/grade', { path });
      else
        show(
          await this.#around.api.put('/tierbar/v1/chats/{id}/messages/{message}/grade', {
            path,
            body: grade,
          }),
        );
      return null;
    } catch (cause) {
      show(before);
      return asApiError(cause);
    }
  }

  /** Shows another version of a question or an answer, with what follows from it. */
  async show(message: Message): Promise<void> {
    if (message.id === null || this.busy) return;
    this.cancelEdit();
    const leaf = lastBelow(this.messages, message.id);
    this.leaf = leaf;
    try {
      this.#note(await this.#patch({ leaf }));
    } catch (cause) {
      this.problem = asApiError(cause);
    }
  }

  /** Puts a question into the draft. Sent, the draft begins a branch beside it. */
  edit(question: Message): void {
    if (this.busy || this.opening || question.id === null) return;
    if (this.editing === null) this.#aside = { draft: this.draft, files: this.files };
    this.editing = question;
    this.draft = question.content;
    this.files = question.files;
  }

  /** Edits the last question that is shown. Returns whether there is one. */
  editLast(): boolean {
    const last = this.turns.findLast(({ question }) => question !== null && question.id !== null);
    if (last?.question) this.edit(last.question);
    return this.editing !== null;
  }

  /** Leaves the question as it is, and restores what was typed before. */
  cancelEdit(): void {
    if (this.editing === null) return;
    this.editing = null;
    ({ draft: this.draft, files: this.files } = this.#aside);
  }

  /** Has the next question begin a branch of its own. The messages are kept, as its other version. */
  startOver(): void {
    if (this.busy || this.opening) return;
    this.cancelEdit();
    this.messages = this.messages.filter(({ id }) => id !== null);
    this.leaf = null;
    this.problem = null;
  }

  async send(text: string): Promise<void> {
    const { files } = this;
    if (this.busy || this.opening || (text.trim() === '' && files.length === 0)) return;
    if (this.editing === null) {
      this.draft = '';
      this.files = [];
    } else {
      this.leaf = this.editing.parent;
      this.cancelEdit();
    }
    this.messages = [...this.messages.filter(({ id }) => id !== null), unsent(text, this.leaf, files)];
    await this.answer();
  }

  /** Answers the last question: for the first time, after an error, or once more. */
  async answer(choice: AnswerChoice = {}): Promise<void> {
    if (this.busy) return;
    const sent = performance.now();
    this.#begin(choice.continued);
    try {
      const begun = await this.#ask(choice);
      if (begun === null) return;
      if (this.#stopped) await this.#cancel();
      await this.#follow(begun.id, sent);
    } catch (cause) {
      await this.#fail(asApiError(cause));
    } finally {
      this.#end();
    }
  }

  /** Stops the turn; what has been written is kept. */
  stop(): void {
    if (!this.busy) return;
    this.#stopped = true;
    if (this.#turn !== null) void this.#cancel();
  }

  /** Answers what the agent of the running turn asks; `null` refuses. */
  async consent(id: string, allow: ConsentScope | null): Promise<void> {
    const path = { id: this.id ?? '', turn: this.#turn ?? '' };
    try {
      await this.#around.api.post('/tierbar/v1/chats/{id}/turns/{turn}/consent', {
        path,
        body: { id, allow },
      });
    } catch (cause) {
      const error = asApiError(cause);
      // It was answered elsewhere meanwhile, which the turn's events tell.
      if (error.status !== 409 && error.status !== 404) this.problem = error;
    }
  }

  /** Follows the turn no longer. It runs on in the host. */
  leave(): void {
    this.#leave.abort();
  }

  #begin(continued?: Message): void {
    this.#leave = new AbortController();
    this.#stopped = false;
    this.busy = true;
    this.problem = null;
    this.revealed = null;
    this.live = beginAnswer(continued);
  }

  /** The card of a problem goes away with the next turn or a reload. Its reason stays at the question, where the host keeps that of a turn. */
  #keepReason(): void {
    const { problem } = this;
    const { question, shown } = this.turns.at(-1) ?? {};
    if (problem === null || problem instanceof ConnectionError || !question?.id || shown) return;
    const { code, message, hint } = problem;
    const explained = { ...question, failure: { code, message, hint } };
    this.messages = this.messages.map((other) => (other === question ? explained : other));
  }

  #end(): void {
    if (this.#summary?.turn != null && this.#turn !== null && this.id !== null && !this.#leave.signal.aborted)
      this.#note({ ...this.#summary, turn: null });
    this.#turn = null;
    this.live = null;
    this.busy = false;
    this.#keepReason();
  }

  async #fail(error: ApiError): Promise<void> {
    if (this.#leave.signal.aborted) return;
    this.problem = error;
    if (error.status !== 404 || !(await this.#isGone())) return;
    // Deleted elsewhere: the next try begins a new chat with the question.
    this.id = null;
    this.leaf = null;
    const question = this.messages.findLast(({ role }) => role === 'user');
    const own = question?.files.filter(({ part }) => part.type !== 'stored');
    this.messages = question ? [unsent(question.content, null, own)] : [];
  }

  /** Whether the chat has been deleted: what was not found may be something else. */
  async #isGone(): Promise<boolean> {
    if (this.id === null) return false;
    try {
      await this.#fetch();
      return false;
    } catch (cause) {
      return asApiError(cause).status === 404;
    }
  }

  /** Reads the chat, and joins its turn if one runs. */
  async #read(): Promise<void> {
    this.#take(await this.#fetch());
  }

  #fetch(): Promise<Chat> {
    return this.#around.api.get('/tierbar/v1/chats/{id}', { path: { id: this.id ?? '' } });
  }

  #take(chat: Chat): void {
    this.model = chat.model;
    this.whenFull = chat.when_full;
    this.#takeSettings(chat);
    const { leaf, messages, ...summary } = chat;
    this.#summary = summary;
    this.#around.onSummary(summary);
    const { turn } = summary;
    // The message that a running turn writes is shown as it comes.
    const written =
      turn === null
        ? undefined
        : (messages.find(({ id, finish }) => id === leaf && finish === null) ??
          messages.findLast(({ role, finish }) => role === 'assistant' && finish === null));
    this.leaf = written ? written.parent : leaf;
    this.messages = messages.filter((message) => message !== written).map(shownMessage);
    if (turn !== null) void this.#join(turn);
  }

  async #join(turn: string): Promise<void> {
    if (this.busy) return;
    this.#begin();
    try {
      await this.#follow(turn, null);
    } catch (cause) {
      await this.#fail(asApiError(cause));
    } finally {
      this.#end();
    }
  }

  /** Begins a turn; `null` if it was stopped before. */
  async #ask({ model = this.model, whenFull, continued }: AnswerChoice): Promise<TurnBegun | null> {
    const { api } = this.#around;
    if (this.id === null) {
      const settings = this.settings === NO_SETTINGS ? {} : this.settings;
      const chat = await api.post('/tierbar/v1/chats', { body: { model: this.model, ...settings } });
      this.id = chat.id;
      this.#note(chat);
    }
    if (this.#stopped) return null;
    const question = this.messages.find(({ id }) => id === null);
    const choice = whenFull ? { when_full: whenFull } : {};
    const path = { id: this.id };
    const agent = this.agent === null ? {} : { agent: agentOptions(this.agent, this.reach) };
    const parts = question?.files.length ? { parts: question.files.map(({ part }) => part) } : {};
    const begun = await api.post('/tierbar/v1/chats/{id}/turns', {
      path,
      body: continued
        ? { ...choice, continue: true, parent: continued.id }
        : question
          ? { ...choice, ...parts, ...agent, text: question.content, model, parent: question.parent }
          : { ...choice, ...agent, model, parent: this.leaf },
    });
    this.#turn = begun.id;
    this.#note(begun.chat);
    if (continued) return begun;
    if (question)
      this.messages = [...this.messages.filter(({ id }) => id !== null), shownMessage(begun.question)];
    this.leaf = begun.question.id;
    return begun;
  }

  async #cancel(): Promise<void> {
    const path = { id: this.id ?? '', turn: this.#turn ?? '' };
    try {
      await this.#around.api.delete('/tierbar/v1/chats/{id}/turns/{turn}', { path });
    } catch (cause) {
      this.problem = asApiError(cause);
    }
  }

  /** Shows the turn's events as they come. `sent`: when this page asked, if it did. */
  async #follow(turn: string, sent: number | null): Promise<void> {
    this.#turn = turn;
    // Its events begin with what an answer that is continued has already.
    let live = { ...(this.live as LiveAnswer), text: '', reasoning: '' };
    let asked = sent;
    // However fast the words come.
    let frame = 0;
    let shown = Number.NEGATIVE_INFINITY;
    const show = (now: number) => {
      if (now - shown < PAINT_MS) {
        frame = requestAnimationFrame(show);
        return;
      }
      shown = now;
      frame = 0;
      if (this.live !== null) this.live = { ...live };
    };
    try {
      const path = { id: this.id ?? '', turn };
      for await (const event of followTurn(this.#around.api, path, this.#leave.signal)) {
        if (event.type === 'finished' || event.type === 'failed') {
          this.#conclude(event);
          return;
        }
        const now = performance.now();
        live = advance(live, event, asked, now);
        // The model goes on from here: neither a step nor a question to the person is its time.
        const goesOn = event.type === 'tool_result' || event.type === 'consent_answered';
        if (goesOn && asked !== null) asked = now;
        if (frame === 0) frame = requestAnimationFrame(show);
      }
    } catch (cause) {
      // Its events are gone, its answer is stored.
      if (asApiError(cause).status === 404) await this.#read();
      else throw cause;
    } finally {
      cancelAnimationFrame(frame);
    }
  }

  #conclude(event: Ending): void {
    const answer = event.type === 'finished' ? event.message : event.answer;
    if (event.type === 'failed') {
      const { code, message, hint, tier, retry_after_seconds: seconds } = event;
      // Apps know the tier by its id, the window by another name.
      const text = message.replace(/(?<=\bof )[\w-]+/g, (name) => (name === tier ? displayName(name) : name));
      this.problem = new ApiError(code, text, hint, 0, false, tier, after(seconds));
    }
    // Stopped before its first word, an answer is not stored.
    if (answer === null || (answer.parts.length === 0 && answer.finish === 'stopped')) return;
    const shown = shownMessage(answer);
    const stored = { ...shown, parent: shown.parent ?? this.leaf };
    const at = this.messages.findIndex(({ id }) => id === shown.id);
    this.messages = at < 0 ? [...this.messages, stored] : this.messages.with(at, stored);
    this.leaf = answer.id;
  }

  #note(summary: ChatSummary): void {
    this.#summary = summary;
    this.whenFull = summary.when_full;
    this.#takeSettings(summary);
    this.#around.onSummary(summary);
  }

  #takeSettings({ instructions, sampling, thinking }: AnswerSettings): void {
    this.settings = { instructions, sampling, thinking };
  }

  #patch(
    body: { model: string } | { leaf: number | null } | { when_full: WhenFull } | Partial<AnswerSettings>,
  ): Promise<ChatSummary> {
    return this.#around.api.patch('/tierbar/v1/chats/{id}', { path: { id: this.id ?? '' }, body });
  }
}

import { ApiError } from '../../lib/http';
import type {
  AnswerTimes,
  ChatMessage,
  ContextUse,
  ExpertReads,
  Finish,
  Grade,
  LeftOut,
  Role,
  TurnFailure,
} from '../../platform/openapi';
import { type QuestionFile, storedFile } from './files';
import { type ToolUse, toolUses } from './tools';

/** A message as the page shows it. */
export interface Message {
  /** The host's; `null` while the question has not reached it. */
  id: number | null;
  parent: number | null;
  role: Role;
  content: string;
  reasoning: string;
  /** The tools that the model called before it answered. */
  tools: ToolUse[];
  /** Of a question. */
  files: QuestionFile[];
  tier: string | null;
  model: string | null;
  /** Why the router chose the tier, or why the steps of a chain before it did not answer. */
  why: string | null;
  /** The chain's first step, if another one answered. */
  insteadOf: string | null;
  finish: Finish | null;
  decode_tokens_per_second: number | null;
  time_to_first_token_ms: number | null;
  /** Where its time went. */
  times: AnswerTimes | null;
  /** Of a mixture whose experts are read when they are chosen. */
  experts: ExpertReads | null;
  /** How much of its context the answer has used. */
  context: ContextUse | null;
  /** The messages that its prompt was without. */
  leftOut: LeftOut | null;
  /** What the owner thinks of it. */
  grade?: Grade | null;
  /** Why the turn that wrote it failed; of a question, why the last one left no answer. */
  failure?: TurnFailure | null;
}

/** A question and its answers. */
export interface Turn {
  key: number;
  question: Message | null;
  /** The question in all its versions, oldest first. */
  questions: Message[];
  answers: Message[];
  /** The answer of the shown branch. */
  shown: Message | null;
}

/** A stored message as the page shows it. */
export function shownMessage(stored: ChatMessage): Message {
  const { parts, instead_of: insteadOf, left_out: leftOut, ...message } = stored;
  const text = (type: 'text' | 'reasoning') =>
    parts.map((part) => (part.type === type ? part.text : '')).join('');
  return {
    ...message,
    insteadOf,
    leftOut,
    content: text('text'),
    reasoning: text('reasoning'),
    tools: toolUses(parts),
    files: parts.map(storedFile).filter((file) => file !== null),
  };
}

/** Why its turn failed, as running text. */
export function reasonOf(message: Message | null | undefined): string | null {
  if (!message?.failure) return null;
  const { code, message: text, hint } = message.failure;
  return new ApiError(code, text, hint).sentences;
}

/** A question on its way to the host. */
export function unsent(content: string, parent: number | null, files: QuestionFile[] = []): Message {
  return {
    id: null,
    parent,
    role: 'user',
    content,
    reasoning: '',
    tools: [],
    files,
    tier: null,
    model: null,
    why: null,
    insteadOf: null,
    finish: null,
    decode_tokens_per_second: null,
    time_to_first_token_ms: null,
    times: null,
    experts: null,
    context: null,
    leftOut: null,
  };
}

/** The messages from the chat's first to the leaf. */
export function branchOf(messages: Message[], leaf: number | null): Message[] {
  const byId = new Map(messages.map((message) => [message.id, message]));
  const branch: Message[] = [];
  let message = leaf === null ? undefined : byId.get(leaf);
  while (message) {
    branch.push(message);
    const { id, parent } = message;
    // A parent is older than its children, so that even a damaged tree ends.
    message = parent !== null && id !== null && parent < id ? byId.get(parent) : undefined;
  }
  return branch.reverse();
}

/** The newest message that follows from this one. */
export function lastBelow(messages: Message[], id: number): number {
  const newest = new Map<number | null, number>();
  for (const { parent, id: child } of messages) if (child !== null) newest.set(parent, child);
  let last = id;
  for (let next = newest.get(last); next !== undefined && next > last; next = newest.get(last)) last = next;
  return last;
}

function byParent(messages: Message[], role: Message['role']): Map<number | null, Message[]> {
  const found = new Map<number | null, Message[]>();
  for (const message of messages) {
    if (message.role !== role) continue;
    const others = found.get(message.parent);
    if (others) others.push(message);
    else found.set(message.parent, [message]);
  }
  return found;
}

/** The shown branch as turns, each with all answers to its question. */
export function turnsOf(messages: Message[], leaf: number | null): Turn[] {
  const turns: Turn[] = [];
  const branch = branchOf(messages, leaf);
  const sending = messages.at(-1);
  if (sending && sending.id === null) branch.push(sending);
  const answersTo = byParent(messages, 'assistant');
  const questionsAfter = byParent(messages, 'user');
  for (const message of branch) {
    const key = message.id ?? Number.MAX_SAFE_INTEGER;
    if (message.role === 'user') {
      const answers = message.id === null ? [] : (answersTo.get(message.id) ?? []);
      const questions = questionsAfter.get(message.parent) ?? [];
      turns.push({ key, question: message, questions, answers, shown: answers.at(-1) ?? null });
    } else if (message.role === 'assistant') {
      const turn = turns.at(-1);
      if (turn?.answers.includes(message)) turn.shown = message;
      else turns.push({ key, question: null, questions: [], answers: [message], shown: message });
    }
  }
  return turns;
}

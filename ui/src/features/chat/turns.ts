import type { ChatMessage, Finish, Role } from '../../platform/api';

/** A message as the page holds it. */
export interface Message {
  role: Role;
  content: string;
  tier: string | null;
  model: string | null;
  finish: Finish | null;
  decode_tokens_per_second: number | null;
  time_to_first_token_ms: number | null;
  /** Stable within the page. */
  key: number;
  saved: boolean;
  /** Part of the time to the first token in which the tier was seen to load; known only while the page lives. */
  loadMs: number | null;
  /** Why the router chose the tier, or what the steps of a chain said before it; known only while the page lives. */
  why: string | null;
  /** The chain's first step, if that could not answer; known only while the page lives. */
  insteadOf: string | null;
}

/** The text of a stored message. */
export function textOf({ parts }: ChatMessage): string {
  return parts.map((part) => (part.type === 'text' ? part.text : '')).join('');
}

/** A question and its answers. Asked again, a question gets another answer beside the first. */
export interface Turn {
  key: number;
  question: Message | null;
  answers: Message[];
}

/** Messages in their order, as turns: consecutive answers are alternatives of each other. */
export function turnsOf(messages: Message[]): Turn[] {
  const turns: Turn[] = [];
  for (const message of messages) {
    if (message.role === 'system') continue;
    const last = turns.at(-1);
    if (message.role === 'assistant' && last) last.answers.push(message);
    else if (message.role === 'assistant')
      turns.push({ key: message.key, question: null, answers: [message] });
    else turns.push({ key: message.key, question: message, answers: [] });
  }
  return turns;
}

/** The answer of a turn that is shown, and that the model is told: the chosen one, else the newest. */
export function shownAnswer(turn: Turn, chosen: number | undefined): Message | undefined {
  return (chosen === undefined ? undefined : turn.answers[chosen]) ?? turn.answers.at(-1);
}

/** What to send so that the last question is answered (again): all before it, then it. */
export function promptOf(
  messages: Message[],
  chosen: Record<number, number | undefined>,
): { role: Role; content: string }[] {
  const prompt: { role: Role; content: string }[] = messages
    .filter((message) => message.role === 'system')
    .map(({ role, content }) => ({ role, content }));
  const turns = turnsOf(messages);
  for (const [index, turn] of turns.entries()) {
    if (turn.question) prompt.push({ role: 'user', content: turn.question.content });
    const answer = shownAnswer(turn, chosen[turn.key]);
    const asked = index === turns.length - 1;
    if (answer?.content && !(asked && turn.question))
      prompt.push({ role: 'assistant', content: answer.content });
  }
  return prompt;
}

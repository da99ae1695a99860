import type { Message, Turn } from './turns';
import { fold } from './words';

/** A message of the shown branch. */
export interface Place {
  /** The key of its turn. */
  turn: number;
  message: number | null;
}

/** What is compared of each message: folding a long chat takes a while. */
const folded = new WeakMap<Message, string>();

/** The messages of the shown branch whose text has the phrase, first to last. Neither case, accents nor the marks of Markdown count. */
export function findMessages(turns: Turn[], phrase: string): Place[] {
  const wanted = plain(phrase.trim());
  if (wanted === '') return [];
  const places: Place[] = [];
  for (const { key, question, shown } of turns)
    for (const message of [question, shown])
      if (message && textOf(message).includes(wanted)) places.push({ turn: key, message: message.id });
  return places;
}

/** Where a message is in the shown branch; `null` if it is not. */
export function placeOf(turns: Turn[], message: number): Place | null {
  const turn = turns.find(({ question, shown }) => question?.id === message || shown?.id === message);
  return turn ? { turn: turn.key, message } : null;
}

function textOf(message: Message): string {
  let text = folded.get(message);
  if (text === undefined) {
    text = plain(message.content);
    folded.set(message, text);
  }
  return text;
}

function plain(text: string): string {
  return fold(text)
    .replace(/[*_`~]/g, '')
    .replace(/\s+/g, ' ');
}

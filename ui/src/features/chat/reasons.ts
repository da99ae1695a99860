import { kept } from '../../lib/kept';

type Reason = [chat: string, question: number, reason: string];

/**
 * Why questions have no answer. The host keeps answers only; the browser keeps this for as long as the window is open, so that a
 * reload does not leave a question alone. More than these belong to abandoned questions.
 */
const reasons = kept<Reason>('sessionStorage', 'tierbar-reasons', 50);

function reasonsOf(chat: string, all: Reason[]): Map<number, string> {
  return new Map(all.filter(([of]) => of === chat).map(([, question, reason]) => [question, String(reason)]));
}

/** Returns the reasons of a chat, by the question's id. */
export function readReasons(chat: string): Map<number, string> {
  return reasonsOf(chat, reasons.read());
}

/** Keeps one more reason, and returns those of its chat. */
export function keepReason(chat: string, question: number, reason: string): Map<number, string> {
  const others = reasons.read().filter(([of, asked]) => of !== chat || asked !== question);
  const all: Reason[] = [...others, [chat, question, reason]];
  reasons.write(all);
  return reasonsOf(chat, all);
}

/**
 * Why questions have no answer. The host keeps answers only; the browser keeps this for as long as the window is open, so that a
 * reload does not leave a question alone.
 */
const KEY = 'tierbar-reasons';

/** More are of questions that nobody goes back to. */
const MOST = 50;

type Reasons = [chat: string, question: number, reason: string][];

function read(): Reasons {
  try {
    const kept: unknown = JSON.parse(sessionStorage.getItem(KEY) ?? '[]');
    return Array.isArray(kept) ? (kept.filter(Array.isArray) as Reasons) : [];
  } catch {
    // Blocked, or written by something else.
    return [];
  }
}

function reasonsOf(chat: string, reasons: Reasons): Map<number, string> {
  return new Map(
    reasons.filter(([kept]) => kept === chat).map(([, question, reason]) => [question, String(reason)]),
  );
}

/** Returns the reasons of a chat, by the question's id. */
export function readReasons(chat: string): Map<number, string> {
  return reasonsOf(chat, read());
}

/** Keeps one more reason, and returns those of its chat. */
export function keepReason(chat: string, question: number, reason: string): Map<number, string> {
  const others = read().filter(([kept, asked]) => kept !== chat || asked !== question);
  const reasons: Reasons = [...others, [chat, question, reason]];
  try {
    sessionStorage.setItem(KEY, JSON.stringify(reasons.slice(-MOST)));
  } catch {
    // Blocked, or full: the page has it still.
  }
  return reasonsOf(chat, reasons);
}

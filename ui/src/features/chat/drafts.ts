/**
 * What is typed and not sent, by chat. The browser keeps it, so that a reload, a closed window or a crash loses no word.
 */
const KEY = 'tierbar-drafts';

/** More are of chats that nobody goes back to. */
const MOST = 30;

type Drafts = [chat: string, text: string][];

/** A chat that does not exist yet has none. */
const name = (chat: string | null) => chat ?? '';

function read(): Drafts {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(KEY) ?? '[]');
    return Array.isArray(kept) ? (kept.filter(Array.isArray) as Drafts) : [];
  } catch {
    // Blocked, or written by something else.
    return [];
  }
}

export function readDraft(chat: string | null): string {
  const text = read().find(([kept]) => kept === name(chat))?.[1];
  return typeof text === 'string' ? text : '';
}

/** An empty text removes what was kept. */
export function keepDraft(chat: string | null, text: string): void {
  const before = read();
  const others = before.filter(([kept]) => kept !== name(chat));
  if (text === '' && others.length === before.length) return;
  const drafts = text === '' ? others : [...others, [name(chat), text]];
  try {
    localStorage.setItem(KEY, JSON.stringify(drafts.slice(-MOST)));
  } catch {
    // Blocked, or full: the page has it still.
  }
}

/** For whoever uses this browser next. */
export function forgetDrafts(): void {
  try {
    localStorage.removeItem(KEY);
  } catch {
    // There are none.
  }
}

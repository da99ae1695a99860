import { kept } from '../../lib/kept';

/**
 * What is typed and not sent, by chat. The browser keeps it, so that a reload, a closed window or a crash loses no word. More
 * than these belong to abandoned chats.
 */
const drafts = kept<[chat: string, text: string]>('tierbar-drafts', 30);

/** A chat that does not exist yet has none. */
const name = (chat: string | null) => chat ?? '';

export function readDraft(chat: string | null): string {
  const text = drafts.read().find(([of]) => of === name(chat))?.[1];
  return typeof text === 'string' ? text : '';
}

/** An empty text removes what was kept. */
export function keepDraft(chat: string | null, text: string): void {
  const before = drafts.read();
  const others = before.filter(([of]) => of !== name(chat));
  if (text !== '') drafts.write([...others, [name(chat), text]]);
  else if (others.length < before.length) drafts.write(others);
}

/** Protects them from the browser's next user. */
export const forgetDrafts = drafts.forget;

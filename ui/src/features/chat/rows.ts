import { dayLabel } from '../../lib/format';
import type { ChatSummary } from '../../platform/openapi';
import { hitsOf, patternsOfSearch } from './words';

/** A line of the list of chats: the heading of a group, or a chat. */
export type Row =
  | { key: string; top: number; height: number; heading: string }
  | { key: string; top: number; height: number; chat: ChatSummary; position: number };

const HEADING = 33;
const CHAT = 33;
/** With the words that a search found. */
const FOUND = 50;
/** So many pixels beyond the visible part are drawn, so that fast scrolling shows no gaps. */
const BEYOND = 300;

/** The chats below the headings of their days; those of a search in one list. */
export function rowsOf(chats: ChatSummary[], now: Date): Row[] {
  const rows: Row[] = [];
  let top = 0;
  let last = '';
  chats.forEach((chat, index) => {
    const heading = chat.found ? '' : chat.pinned ? 'Pinned' : dayLabel(chat.updated_at, now);
    if (heading !== last) {
      rows.push({ key: `heading ${heading}`, top, height: HEADING, heading });
      top += HEADING;
      last = heading;
    }
    const height = chat.found ? FOUND : CHAT;
    rows.push({ key: chat.id, top, height, chat, position: index + 1 });
    top += height;
  });
  return rows;
}

export function heightOf(rows: Row[]): number {
  const last = rows.at(-1);
  return last ? last.top + last.height : 0;
}

/** The rows to draw, and with them `always`, so that the focus is never lost. */
export function visibleRows(rows: Row[], from: number, height: number, always: string | null): Row[] {
  const first = firstBelow(rows, from - BEYOND);
  const end = firstBelow(rows, from + height + BEYOND);
  const visible = rows.slice(first, Math.min(end + 1, rows.length));
  const kept = rows.find((row) => row.key === always);
  if (!kept || visible.includes(kept)) return visible;
  return kept.top < (visible[0]?.top ?? 0) ? [kept, ...visible] : [...visible, kept];
}

/** The first row that ends below this line. */
function firstBelow(rows: Row[], line: number): number {
  let [low, high] = [0, rows.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    const row = rows[middle];
    if (row && row.top + row.height <= line) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** A piece of a text, and whether the search found it. */
export interface Piece {
  text: string;
  hit: boolean;
}

/** Marks the words of a search in a text. */
export function markWords(text: string, search: string): Piece[] {
  const pieces: Piece[] = [];
  let done = 0;
  for (const [from, to] of hitsOf(text, patternsOfSearch(search))) {
    if (from > done) pieces.push({ text: text.slice(done, from), hit: false });
    pieces.push({ text: text.slice(from, to), hit: true });
    done = to;
  }
  if (done < text.length) pieces.push({ text: text.slice(done), hit: false });
  return pieces;
}

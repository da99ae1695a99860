/** What can be found in the palette. */
export interface Entry {
  /** Unique. */
  id: string;
  label: string;
  /** The heading of its group. */
  group: string;
  /** Further words by which it is found. */
  words?: string;
  /** The keys that do the same, such as `⌘N`. */
  keys?: string;
  run: () => void;
}

/** So many entries are shown: more are not looked through. */
const MOST = 50;

/** The entries that have the letters of the query in this order, best first; without a query, as they are. Case and accents do not count. */
export function findEntries(entries: Entry[], query: string): Entry[] {
  const letters = fold(query).replace(/\s+/g, '');
  if (letters === '') return entries.slice(0, MOST);
  const found: { entry: Entry; score: number }[] = [];
  for (const entry of entries) {
    const label = score(fold(entry.label), letters);
    const words = entry.words === undefined ? null : score(fold(entry.words), letters);
    const best = Math.max(
      label ?? Number.NEGATIVE_INFINITY,
      words === null ? Number.NEGATIVE_INFINITY : words - 4,
    );
    if (best > Number.NEGATIVE_INFINITY) found.push({ entry, score: best });
  }
  // Sorting is stable: equal ones stay in their order.
  return found
    .sort((a, b) => b.score - a.score)
    .slice(0, MOST)
    .map(({ entry }) => entry);
}

/** How well the letters are found in a text; `null` if they are not. Letters at the beginning of words, and neighbours, count more. */
function score(text: string, letters: string): number | null {
  // From each place where the first letter is, for "Set" in "Reset Settings".
  let best: number | null = null;
  for (
    let start = text.indexOf(letters.charAt(0));
    start >= 0;
    start = text.indexOf(letters.charAt(0), start + 1)
  ) {
    const value = scoreFrom(text, letters, start);
    if (value === null) break;
    if (best === null || value > best) best = value;
  }
  return best;
}

function scoreFrom(text: string, letters: string, start: number): number | null {
  let value = -text.length / 100;
  let before = -2;
  let at = start - 1;
  for (const letter of letters) {
    at = text.indexOf(letter, at + 1);
    if (at < 0) return null;
    const begins = at === 0 || /[^\p{L}\p{N}]/u.test(text.charAt(at - 1));
    if (at === before + 1) value += 3;
    else if (begins) value += 2;
    else value -= Math.min(at - before, 10) / 10;
    if (begins) value += 1;
    before = at;
  }
  return value;
}

function fold(text: string): string {
  return text.normalize('NFD').replace(/\p{M}/gu, '').toLowerCase();
}

import { hitsOf } from './words';

/** The name of what is marked, in the style sheet. */
const NAME = 'found';

/** Marks what the patterns find in the text of an element, without changing it. Returns the first place; `null` without one. */
export function mark(element: Element, patterns: RegExp[]): Range | null {
  const ranges = rangesOf(element, patterns);
  if (canMark()) CSS.highlights.set(NAME, new Highlight(...ranges));
  return ranges[0] ?? null;
}

export function unmark(): void {
  if (canMark()) CSS.highlights.delete(NAME);
}

/** Older browsers show no marks. */
function canMark(): boolean {
  return 'highlights' in (globalThis.CSS ?? {});
}

/** Where the patterns are found. A place may begin in one element and end in another. */
export function rangesOf(element: Element, patterns: RegExp[]): Range[] {
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  const nodes: { node: Text; from: number }[] = [];
  let text = '';
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
    nodes.push({ node: node as Text, from: text.length });
    text += (node as Text).data;
  }
  const at = (place: number, isEnd: boolean) => {
    // An end belongs to the node before it.
    const found = nodes.findLast(({ from }) => (isEnd ? from < place : from <= place));
    return found ? ([found.node, place - found.from] as const) : null;
  };
  return hitsOf(text, patterns).flatMap(([from, to]) => {
    const [begin, end] = [at(from, false), at(to, true)];
    if (!begin || !end) return [];
    const range = document.createRange();
    range.setStart(...begin);
    range.setEnd(...end);
    return [range];
  });
}

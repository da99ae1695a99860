/** What an answer's text says, and what the model thought before it. */
export interface Thinking {
  reasoning: string;
  text: string;
  /** The model still thinks. */
  isOpen: boolean;
}

const OPENER = /^\s*<(think|thinking)>/;
const END = '</think>';

/** Whether the text begins as one that contains the model's thinking. */
export function beginsThinking(text: string): boolean {
  return OPENER.test(text);
}

/**
 * Splits off what a model thinks between `<think>` or `<thinking>` and its end, at the beginning of an answer: some servers leave it in the
 * text. Tags within closed code fences are code. While the text grows, half a tag is shown as neither. Where a template has begun the
 * thinking, its end stands alone.
 */
export function splitThinking(text: string, isGrowing: boolean): Thinking {
  const opener = text.match(OPENER);
  if (!opener) {
    const unopened = splitUnopened(text);
    if (unopened) return unopened;
    const isHalf = isGrowing && /^\s*<t?h?i?n?k?i?n?g?$/.test(text);
    return { reasoning: '', text: isHalf ? '' : text, isOpen: false };
  }
  const [tag, name] = opener as unknown as [string, string];
  const inner = text.slice(tag.length);
  // A fence without an end may have swallowed it.
  const end = endOf(inner, name, true) ?? (isGrowing ? null : endOf(inner, name, false));
  if (end === null) {
    const shown = isGrowing ? inner.replace(/<\/?[a-z]{0,8}$/, '') : inner;
    return { reasoning: shown.trim(), text: '', isOpen: isGrowing };
  }
  const [from, to] = end;
  return { reasoning: inner.slice(0, from).trim(), text: inner.slice(to).trimStart(), isOpen: false };
}

/** Splits at an end tag that stands alone at the end of a line, and not in code. */
function splitUnopened(text: string): Thinking | null {
  const at = text.indexOf(END);
  if (at < 0 || text.includes('<think>')) return null;
  const before = text.slice(0, at);
  const after = text.slice(at + END.length);
  const isCode = before.split('```').length % 2 === 0;
  if (isCode || !/^(\r?\n|$)/.test(after) || after.includes(END)) return null;
  return { reasoning: before.trim(), text: after.trimStart(), isOpen: false };
}

/** Where the tag that ends the thinking is; tags may be nested. */
function endOf(inner: string, name: string, minds: boolean): [number, number] | null {
  const fences = minds ? closedFences(inner) : [];
  let fence = 0;
  let depth = 1;
  for (const { 0: tag, index } of inner.matchAll(new RegExp(`</?${name}>`, 'g'))) {
    while ((fences[fence]?.[1] ?? Number.POSITIVE_INFINITY) <= index) fence += 1;
    if ((fences[fence]?.[0] ?? Number.POSITIVE_INFINITY) < index) continue;
    depth += tag.startsWith('</') ? -1 : 1;
    if (depth === 0) return [index, index + tag.length];
  }
  return null;
}

/** Where code fences begin and end. */
function closedFences(text: string): [number, number][] {
  const fences: [number, number][] = [];
  let open: { mark: string; at: number } | null = null;
  for (const line of text.matchAll(/^ {0,3}(`{3,}|~{3,})(.*)$/gm)) {
    const [whole, mark = '', rest = ''] = line;
    if (open === null) open = { mark, at: line.index };
    else if (mark.startsWith(open.mark) && rest.trim() === '') {
      fences.push([open.at, line.index + whole.length]);
      open = null;
    }
  }
  return fences;
}

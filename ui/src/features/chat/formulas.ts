import type { Lexer, TokenizerAndRendererExtension, Tokens } from 'marked';
import { formula } from './math';

/** A formula that is longer than this is taken for something else. */
const LONGEST = 20_000;
const LONGEST_BETWEEN_DOLLARS = 1000;

const CLOSERS = { '\\(': '\\)', '\\[': '\\]', $$: '$$' } as const;
type Opener = keyof typeof CLOSERS;

interface Formula extends Tokens.Generic {
  text: string;
  display: boolean;
}

/**
 * TeX between `\( \)`, `\[ \]`, `$$ $$` and `$ $`. With `growing`, a formula in a paragraph of its own that has no end yet is
 * text up to where it ends, so that its lines become neither lists nor headings meanwhile.
 */
export function formulaRules(growing: boolean): TokenizerAndRendererExtension[] {
  return [
    {
      name: 'formula',
      level: 'block',
      start(source) {
        // Only what may interrupt this paragraph; the next one is asked again.
        const end = source.indexOf('\n\n');
        const paragraph = end < 0 ? source : source.slice(0, end);
        const found = paragraph.search(/\n {0,3}(?:\$\$(?!\$)|\\\[)/);
        return found < 0 ? undefined : found + 1;
      },
      tokenizer(source) {
        const indent = source.match(/^ {0,3}(?=\$\$(?!\$)|\\\[)/)?.[0].length;
        if (indent === undefined) return;
        const begun = source.slice(indent, indent + LONGEST);
        const blank = begun.search(/\n[ \t]*\n/);
        const paragraph = blank < 0 ? begun : begun.slice(0, blank);
        const inner = enclosed(paragraph, begun.slice(0, 2) as Opener);
        if (inner === null) {
          const open = growing && blank < 0 && source.length < LONGEST;
          return open ? { type: 'openFormula', raw: source, text: source.trimEnd() } : undefined;
        }
        const after = begun.slice(inner.length + 4).match(/^[ \t]*[.,;:]?[ \t]*(?:\n|$)/)?.[0];
        if (after === undefined) return;
        const raw = source.slice(0, indent + inner.length + 4) + after;
        const tex = inner + (after.match(/[.,;:]/)?.[0] ?? '');
        return { type: 'formula', raw, text: tex, display: true };
      },
      renderer: (token) => `<p>${formulaHtml(token as Formula)}</p>`,
    },
    {
      name: 'inlineFormula',
      level: 'inline',
      start(source) {
        let at = source.indexOf('$');
        while (at > 0 && /[\w$\\]/.test(source[at - 1] ?? '')) at = source.indexOf('$', at + 1);
        return at < 0 ? undefined : at;
      },
      tokenizer(source, tokens) {
        const opener = source.slice(0, 2);
        if (opener in CLOSERS) {
          const inner = closes(this.lexer, source, opener as Opener);
          if (inner === null || inner.trim() === '') return;
          const raw = source.slice(0, inner.length + 4);
          return { type: 'inlineFormula', raw, text: inner, display: opener !== '\\(' };
        }
        if (source[0] !== '$' || /\w$/.test(tokens.at(-1)?.raw ?? '')) return;
        const inner = betweenDollars(source);
        return inner === null
          ? undefined
          : { type: 'inlineFormula', raw: `$${inner}$`, text: inner, display: false };
      },
      renderer: (token) => formulaHtml(token as Formula),
    },
  ];
}

function formulaHtml({ text, display, raw }: Formula): string {
  return formula(text.trim(), display, raw.trim());
}

/** The text with formulas blanked out, so that a `*` in one neither begins nor ends emphasis around it. */
export function maskFormulas(source: string): string {
  if (!source.includes('\\(') && !source.includes('$')) return source;
  let masked = '';
  let at = 0;
  for (const { index, 0: opener } of source.matchAll(/\\[([]|\$\$?/g)) {
    if (index < at) continue;
    const inner =
      opener === '$' ? betweenDollars(source.slice(index)) : enclosed(source.slice(index), opener as Opener);
    if (inner === null) {
      // Nothing else of its kind is closed either.
      if (opener !== '$') break;
      continue;
    }
    const end = index + inner.length + (opener === '$' ? 2 : 4);
    masked += source.slice(at, index) + 'a'.repeat(end - index);
    at = end;
  }
  return masked + source.slice(at);
}

/** What is between the opener and its closer; `null` without one. */
function enclosed(source: string, opener: Opener): string | null {
  const closer = CLOSERS[opener];
  let end = source.indexOf(closer, 2);
  // In `\\)` the backslash belongs to the line break before.
  while (end > 0 && opener !== '$$' && backslashesBefore(source, end) % 2 === 1)
    end = source.indexOf(closer, end + 1);
  return end < 0 ? null : source.slice(2, end);
}

function backslashesBefore(source: string, end: number): number {
  let count = 0;
  while (source[end - 1 - count] === '\\') count += 1;
  return count;
}

/** Per lexer, how a run of text ends that has no such closer, and from which length on: any later part of it has none either. */
const unclosed = new WeakMap<Lexer, Map<Opener, { length: number; end: string }>>();

function closes(lexer: Lexer, source: string, opener: Opener): string | null {
  const known = unclosed.get(lexer) ?? new Map<Opener, { length: number; end: string }>();
  const run = known.get(opener);
  const end = source.slice(-64);
  if (run && source.length < run.length && end === run.end) return null;
  const inner = enclosed(source, opener);
  if (inner === null) unclosed.set(lexer, known.set(opener, { length: source.length, end }));
  return inner;
}

/** `$x$` is a formula; `$5 and $10`, `$HOME/bin:$PATH` and `US$ 3` are not. */
function betweenDollars(source: string): string | null {
  const inner = source
    .slice(0, LONGEST_BETWEEN_DOLLARS)
    .match(/^\$(?![\s$])((?:\\[^\n]|[^\\$\n])+)\$(?![\w$])/)?.[1];
  if (inner === undefined || /\s$/.test(inner)) return null;
  const isProse = !/[\\^_={}<>+*|]/.test(inner) && /(?:^|\s)[a-z]{2,}(?:\s|$)/i.test(inner);
  return isProse ? null : inner;
}

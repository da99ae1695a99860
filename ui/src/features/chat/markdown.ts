import DOMPurify, { type Config } from 'dompurify';
import { Lexer, Marked, type MarkedExtension, Renderer, type Token, Tokenizer } from 'marked';
import { codePointName, DIRECTION, OVERRIDE } from '../../lib/direction';
import { escapeHtml } from '../../lib/html';
import { formulaRules, maskFormulas } from './formulas';
import { highlight } from './highlight';
import { formula } from './math';

/** Attributes that only our own HTML has: labels, and those of MathML. No value of theirs is an address. */
const OWN = [
  ...['type', 'start', 'align', 'dir', 'role', 'aria-label', 'aria-pressed'],
  ...[
    'display',
    'displaystyle',
    'scriptlevel',
    'mathvariant',
    'linethickness',
    'notation',
    'width',
    'height',
  ],
  ...[
    'depth',
    'voffset',
    'lspace',
    'rspace',
    'minsize',
    'maxsize',
    'stretchy',
    'symmetric',
    'largeop',
    'fence',
  ],
  ...['separator', 'movablelimits', 'accent', 'accentunder', 'form', 'columnspan', 'rowspan'],
];

/**
 * A model's words are untrusted: HTML in them is shown as text, links leave the window, images become links (fetching
 * one would tell its server that the answer was read). DOMPurify then checks what is left. MathML and labels are our own.
 */
const ALLOWED: Config = {
  ALLOWED_TAGS: [
    ...['p', 'br', 'hr', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'blockquote', 'ul', 'ol', 'li'],
    ...['strong', 'em', 'del', 'a', 'code', 'pre', 'span', 'div', 'button'],
    ...['table', 'thead', 'tbody', 'tr', 'th', 'td'],
    ...[
      'math',
      'mrow',
      'mi',
      'mn',
      'mo',
      'ms',
      'mtext',
      'mspace',
      'mfrac',
      'msqrt',
      'mroot',
      'mstyle',
      'merror',
    ],
    ...[
      'msub',
      'msup',
      'msubsup',
      'munder',
      'mover',
      'munderover',
      'mmultiscripts',
      'mprescripts',
      'mpadded',
    ],
    ...['mphantom', 'menclose', 'mtable', 'mtr', 'mtd'],
  ],
  ALLOWED_ATTR: ['class', 'href', 'title', ...OWN],
  ADD_URI_SAFE_ATTR: OWN,
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  ALLOWED_URI_REGEXP: /^(?:https?:|mailto:)/i,
};

const purify = DOMPurify(window);
purify.addHook('afterSanitizeAttributes', (node) => {
  if (node.tagName !== 'A' || !node.hasAttribute('href')) return;
  node.setAttribute('target', '_blank');
  node.setAttribute('rel', 'noopener noreferrer');
});

/** A longer run of text is shown as it is: some rules look at the rest of the run at each character. */
const LONGEST_RUN = 10_000;

/** As many blocks are kept apart: more are joined, for each costs the page something. */
const MOST_BLOCKS = 200;

/** A block that grows beyond this is closed and goes on in another, so that an endless line costs no more than a short one. */
const LONGEST_OPEN = 32_000;

/** Backslashes that CommonMark drops and TeX needs, in a formula that was not recognised. */
const TEX_ESCAPE = /^\\[()[\]{}\\,;:]/;

/** Lists, quotations or emphases within each other: what is deeper is shown as text. Each level costs the parser more. */
const DEEPEST = 12;

// Words by themselves, so that they can be translated.
const [CODE, TABLE] = ['Code', 'Table'];
const [COPY, COPY_CODE] = ['Copy', 'Copy code'];
const [WRAP, WRAP_LINES] = ['Wrap', 'Wrap long lines'];
const imageLabel = (text: string) => `Image: ${text}`;

const { codespan, table, text } = Renderer.prototype;

/** How many rules the parser is within. */
let depth = 0;

/** A rule that holds other text, down to `DEEPEST`. */
function shallow<Rest extends unknown[], Found>(rule: (this: Tokenizer, ...source: Rest) => Found) {
  return function (this: Tokenizer, ...source: Rest): Found | undefined {
    // No token, as for HTML.
    if (depth === DEEPEST) return undefined;
    depth += 1;
    try {
      return rule.apply(this, source);
    } finally {
      depth -= 1;
    }
  };
}

function rules(isGrowing: boolean): MarkedExtension {
  return {
    gfm: true,
    breaks: true,
    extensions: [
      ...formulaRules(isGrowing),
      { name: 'openFormula', renderer: ({ text }) => `<p>${plain(text)}</p>` },
    ],
    hooks: { emStrongMask: maskFormulas },
    tokenizer: {
      // No token: the characters are left to the rules for text.
      html: () => undefined,
      tag: () => undefined,
      blockquote: shallow(Tokenizer.prototype.blockquote),
      list: shallow(Tokenizer.prototype.list),
      emStrong: shallow(Tokenizer.prototype.emStrong),
      del: shallow(Tokenizer.prototype.del),
      link: shallow(Tokenizer.prototype.link),
      escape(source) {
        const raw = source.match(TEX_ESCAPE)?.[0];
        return raw ? { type: 'escape', raw, text: raw } : false;
      },
    },
    renderer: {
      image: ({ href, text }) => `<a href="${escapeHtml(href)}">${escapeHtml(imageLabel(text || href))}</a>`,
      checkbox: ({ checked }) => (checked ? '☑ ' : '☐ '),
      heading({ tokens, depth }) {
        // The chat's title is the first level, its messages are the second.
        return `<h${Math.min(depth + 2, 6)} class="level-${depth}">${this.parser.parseInline(tokens)}</h${Math.min(depth + 2, 6)}>`;
      },
      table(token) {
        return `<div class="table" role="group" aria-label="${TABLE}">${table.call(this, token)}</div>`;
      },
      codespan(token) {
        return codespan.call(this, token).replace(DIRECTION, markDirection);
      },
      text(token) {
        const html = text.call(this, token);
        return 'tokens' in token && token.tokens ? html : html.replace(OVERRIDE, markDirection);
      },
      code({ text, lang }) {
        const language = lang?.match(/^[\w+#.-]{1,24}/)?.[0] ?? '';
        if (language === 'math' && !isGrowing) return `<p>${formula(text.trim(), true, text)}</p>`;
        const html = isGrowing ? escapeHtml(text) : highlight(text, language);
        return (
          `<div class="code"><div class="code-head"><span>${escapeHtml(language || 'text')}</span>` +
          `<button type="button" class="wrap-code" aria-label="${WRAP_LINES}" aria-pressed="false">${WRAP}</button>` +
          `<button type="button" class="copy-code" aria-label="${COPY_CODE}">${COPY}</button></div>` +
          `<pre dir="ltr" role="group" aria-label="${CODE}">` +
          `<code>${html.replace(DIRECTION, markDirection)}</code></pre></div>`
        );
      },
    },
  };
}

function markDirection(character: string): string {
  return `<span class="direction" title="${codePointName(character)}">${character}</span>`;
}

const finished = new Marked(rules(false));
/** For a block that may still grow: highlighting it would be thrown away at the next word. */
const growing = new Marked(rules(true));

/** The whole text, block by block, as safe HTML. */
export function renderMarkdown(source: string): string[] {
  const tokens = lex(finished, unixLines(source));
  const size = Math.ceil(tokens.length / MOST_BLOCKS);
  const html: string[] = [];
  for (let at = 0; at < tokens.length; at += size) {
    const group = tokens.slice(at, at + size);
    const [only] = group;
    if (group.length === 1 && only?.type === 'paragraph' && only.raw.length > LONGEST_OPEN)
      html.push(...pieces(only.raw));
    else html.push(...blockHtml(finished, ...group));
  }
  return html;
}

/** A very long paragraph in parts, of which the page lays out only those that are seen. */
function pieces(text: string): string[] {
  const html: string[] = [];
  for (let rest = text; rest !== ''; ) {
    const part = rest.length > LONGEST_OPEN ? rest.slice(0, cut(rest)) : rest;
    rest = rest.slice(part.length);
    html.push(...purified(`<p class="piece">${plain(part)}</p>`));
  }
  return html;
}

/** Renders a text that grows: blocks that can no longer change are parsed, highlighted and sanitised once. */
export class GrowingMarkdown {
  /** Closed blocks, by the hundreds. */
  #joined: string[] = [];
  #closed: string[] = [];
  #closedLength = 0;
  #text = '';
  /** The first line of a code block that was closed for its length and goes on. */
  #fence = '';

  update(source: string): string[] {
    const text = unixLines(source);
    if (!text.startsWith(this.#text)) {
      this.#joined = [];
      this.#closed = [];
      this.#closedLength = 0;
      this.#fence = '';
    }
    this.#text = text;
    while (this.#closeOne(text));
    const rest = this.#fence + text.slice(this.#closedLength);
    return [
      ...this.#joined,
      ...this.#closed,
      ...lex(growing, rest).flatMap((token) => blockHtml(growing, token)),
    ];
  }

  /** Closes the blocks before the last one, or a part of one that is too long. Returns whether there may be more. */
  #closeOne(text: string): boolean {
    const rest = this.#fence + text.slice(this.#closedLength);
    const tokens = blocks(growing, rest);
    const closed = closable(tokens, rest);
    if (closed > 0) {
      const length = tokens.slice(0, closed).reduce((sum, token) => sum + token.raw.length, 0);
      this.#close(rest.slice(0, length), '');
      return false;
    }
    if (rest.length <= LONGEST_OPEN) return false;
    const part = rest.slice(0, cut(rest));
    const last = tokens.at(-1);
    const isCode = last?.type === 'code' && !last.codeBlockStyle;
    this.#close(part, isCode ? part.slice(0, part.indexOf('\n') + 1) : '');
    return true;
  }

  #close(part: string, fence: string): void {
    this.#closed.push(...renderMarkdown(part));
    if (this.#closed.length > MOST_BLOCKS) this.#joined.push(this.#closed.splice(0, MOST_BLOCKS).join(''));
    this.#closedLength += part.length - this.#fence.length;
    this.#fence = fence;
  }
}

/** Where a long block is cut: at the last end of a line or word before the limit. */
function cut(text: string): number {
  const part = text.slice(0, LONGEST_OPEN);
  const half = LONGEST_OPEN / 2;
  const line = part.lastIndexOf('\n') + 1;
  if (line > half) return line;
  const word = part.lastIndexOf(' ') + 1;
  if (word > half) return word;
  // Not within a surrogate pair.
  return /[\ud800-\udbff]$/.test(part) ? part.length - 1 : part.length;
}

/** How many blocks can no longer change. An unfinished line does not count: `2` may become the list's `2. second`. */
function closable(tokens: Token[], text: string): number {
  if (lastBlock(tokens) === 0) return 0;
  const whole = blocks(growing, text.slice(0, text.lastIndexOf('\n') + 1));
  const byLines = lastBlock(whole);
  // A fence that something follows has ended, whatever that will be.
  const fence = tokens
    .slice(0, lastBlock(tokens))
    .findLastIndex((token) => token.type === 'code' && !token.codeBlockStyle);
  return fence >= byLines ? fence + 1 : byLines;
}

function lastBlock(tokens: Token[]): number {
  return Math.max(
    tokens.findLastIndex((token) => token.type !== 'space'),
    0,
  );
}

/** The blocks of a text, not yet parsed any further. */
function blocks(marked: Marked, text: string): Token[] {
  return new Lexer(marked.defaults).blockTokens(text);
}

function lex(marked: Marked, text: string): Token[] {
  const lexer = new Lexer(marked.defaults);
  const tokens = lexer.blockTokens(text, lexer.tokens);
  // A run may add others.
  for (const { src, tokens } of lexer.inlineQueue) {
    if (src.length <= LONGEST_RUN) lexer.inlineTokens(src, tokens);
    else tokens.push({ type: 'text', raw: src, text: plain(src), escaped: true });
  }
  return tokens;
}

/** Text that is shown line by line as it is. */
function plain(text: string): string {
  return `<span class="plain">${escapeHtml(text)}</span>`;
}

function blockHtml(marked: Marked, ...tokens: Token[]): string[] {
  return purified(marked.parser(tokens));
}

function purified(source: string): string[] {
  const html = purify.sanitize(source, ALLOWED);
  return html === '' ? [] : [html];
}

/** The lexer does the same; done before it, the lengths of its tokens are lengths in our text. */
function unixLines(text: string): string {
  return text.includes('\r') ? text.replace(/\r\n?/g, '\n') : text;
}

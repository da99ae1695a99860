import DOMPurify, { type Config } from 'dompurify';
import { Marked, type MarkedExtension, type Token } from 'marked';
import { escapeHtml } from '../../lib/html';
import { highlight } from './highlight';

/**
 * A model's words are untrusted: HTML in them is shown as text, links leave the window, images become links (fetching
 * one would tell its server that the answer was read). DOMPurify then checks what is left.
 */
const ALLOWED: Config = {
  ALLOWED_TAGS: [
    ...['p', 'br', 'hr', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'blockquote', 'ul', 'ol', 'li'],
    ...['strong', 'em', 'del', 'a', 'code', 'pre', 'span', 'div', 'button'],
    ...['table', 'thead', 'tbody', 'tr', 'th', 'td'],
  ],
  ALLOWED_ATTR: ['class', 'href', 'title', 'type', 'start', 'align'],
  ADD_URI_SAFE_ATTR: ['type', 'start', 'align'],
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

const rules = (code: (text: string, language: string) => string): MarkedExtension => ({
  gfm: true,
  breaks: true,
  tokenizer: {
    // No token: the characters are left to the rules for text.
    html: () => undefined,
    tag: () => undefined,
  },
  renderer: {
    image: ({ href, text }) => `<a href="${escapeHtml(href)}">Image: ${escapeHtml(text || href)}</a>`,
    checkbox: ({ checked }) => (checked ? '☑ ' : '☐ '),
    code({ text, lang }) {
      const language = lang?.match(/^[\w+#.-]{1,24}/)?.[0] ?? '';
      return (
        `<div class="code"><div class="code-head"><span>${escapeHtml(language || 'text')}</span>` +
        `<button type="button" class="copy-code">Copy</button></div>` +
        `<pre><code>${code(text, language)}</code></pre></div>`
      );
    },
  },
});

const finished = new Marked(rules(highlight));
/** For a block that may still grow: colouring it would be thrown away at the next word. */
const growing = new Marked(rules((text) => escapeHtml(text)));

/** The whole text, block by block, as safe HTML. */
export function renderMarkdown(source: string): string[] {
  return lex(unixLines(source)).flatMap((token) => blockHtml(finished, token));
}

/** Renders a text that grows: blocks that can no longer change are parsed, coloured and sanitised once. */
export class GrowingMarkdown {
  #closed: string[] = [];
  #closedLength = 0;
  #text = '';

  update(source: string): string[] {
    const text = unixLines(source);
    if (!text.startsWith(this.#text)) {
      this.#closed = [];
      this.#closedLength = 0;
    }
    this.#text = text;
    let tokens = lex(text.slice(this.#closedLength));
    const closed = this.#closable(tokens, text);
    if (closed.length > 0) {
      this.#closed.push(...closed.flatMap((token) => blockHtml(finished, token)));
      this.#closedLength += closed.reduce((sum, token) => sum + token.raw.length, 0);
      tokens = lex(text.slice(this.#closedLength));
    }
    return [...this.#closed, ...tokens.flatMap((token) => blockHtml(growing, token))];
  }

  /** The blocks before the last one. An unfinished line does not count: `2` may become the list's `2. second`. */
  #closable(tokens: Token[], text: string): Token[] {
    const whole = lex(text.slice(this.#closedLength, text.lastIndexOf('\n') + 1));
    const byLines = whole.slice(0, lastBlock(whole));
    // A fence that something follows has ended, whatever that will be.
    const fence = tokens
      .slice(0, lastBlock(tokens))
      .findLastIndex((token) => token.type === 'code' && !token.codeBlockStyle);
    return fence >= byLines.length ? tokens.slice(0, fence + 1) : byLines;
  }
}

function lastBlock(tokens: Token[]): number {
  return Math.max(
    tokens.findLastIndex((token) => token.type !== 'space'),
    0,
  );
}

function lex(text: string): Token[] {
  return finished.lexer(text);
}

function blockHtml(marked: Marked, token: Token): string[] {
  const html = purify.sanitize(marked.parser([token]), ALLOWED);
  return html === '' ? [] : [html];
}

/** The lexer does the same; done before it, the lengths of its tokens are lengths in our text. */
function unixLines(text: string): string {
  return text.includes('\r') ? text.replace(/\r\n?/g, '\n') : text;
}

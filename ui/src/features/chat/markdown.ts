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

/** Renders a text that grows: blocks that can no longer change are parsed and sanitised once. */
export class GrowingMarkdown {
  #closed: string[] = [];
  #closedLength = 0;

  update(source: string): string[] {
    const text = unixLines(source);
    const tokens = lex(text.slice(this.#closedLength));
    const open = tokens.findLastIndex((token) => token.type !== 'space');
    for (const token of tokens.slice(0, Math.max(open, 0))) {
      this.#closed.push(...blockHtml(finished, token));
      this.#closedLength += token.raw.length;
    }
    const last = tokens[open];
    return last ? [...this.#closed, ...blockHtml(growing, last)] : [...this.#closed];
  }
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

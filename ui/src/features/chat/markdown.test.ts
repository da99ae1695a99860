import { describe, expect, it } from 'vitest';
import { GrowingMarkdown, renderMarkdown } from './markdown';

const dom = (source: string, blocks = renderMarkdown(source)) => {
  const root = document.createElement('div');
  root.innerHTML = blocks.join('');
  return root;
};

const SAMPLE = [
  '# Title\r\n\r\nA paragraph with **bold**, `code` and\ra line.',
  '- one\n- two\n\n  more of two\n\n- three\n',
  '```rust\nfn main() {\n\n    let x = "<b>";\n}\n```',
  '| a | b |\n|---|--:|\n| 1 | 2 |',
  '> a quote\n> goes on\n\n---\n\n1. first\n   ```sh\n   ls\n   ```\n2. second 🦙',
].join('\n\n');

describe('Markdown from a model', () => {
  it.each([
    ['a script', 'before <script>alert(1)</script> after'],
    ['a script as a block', '<script>\nalert(1)\n</script>'],
    ['a handler', '<p onmouseover="alert(1)">x</p>'],
    ['an image with a handler', 'x <img src=x onerror=alert(1)>'],
    ['a frame', '<iframe src="//example.com"></iframe>'],
    ['a style', '<style>body { display: none }</style>'],
    ['a form', '<form action="//example.com"><input name=a></form>'],
    ['svg', '<svg><script>alert(1)</script></svg>'],
    ['nested tags', '<div><div><a href="javascript:alert(1)"><b>x</b></a></div></div>'],
    ['tags that hide in tags', '<scr<script>ipt>alert(1)</scr</script>ipt>'],
    ['an unclosed tag', '<img src="x" onerror="alert(1)'],
    ['a comment', 'a <!-- hidden --> b'],
  ])('shows %s as the text that it is', (_name, source) => {
    const root = dom(source);
    expect(root.querySelectorAll('script, img, iframe, style, form, input, svg, b')).toHaveLength(0);
    for (const element of root.querySelectorAll('*')) {
      for (const { name } of element.attributes) expect(name).not.toMatch(/^on|^style$/);
    }
    expect(root.querySelectorAll('a[href]')).toHaveLength(0);
    expect(root.textContent?.replace(/\s/g, '')).toBe(source.replace(/\s/g, ''));
  });

  it.each([
    '[x](javascript:alert(1))',
    '[x](JaVaScRiPt:alert(1))',
    '[x](<java\tscript:alert(1)>)',
    '[x](&#106;avascript:alert(1))',
    '[x](data:text/html,<script>alert(1)</script>)',
    '[x](vbscript:x)',
    '[x](file:///etc/passwd)',
    '[x](/tierbar/v1/chats)',
    '[x](settings.html)',
    '[x](//example.com/x)',
    '<javascript:alert(1)>',
  ])('makes no link of %s', (source) => {
    expect(dom(source).querySelectorAll('a[href]')).toHaveLength(0);
  });

  it('opens links elsewhere, without a referrer', () => {
    for (const source of [
      '[x](https://example.com/a?b=1)',
      'https://example.com/a?b=1',
      '<https://example.com/a?b=1>',
    ]) {
      const link = dom(source).querySelector('a');
      expect(link?.getAttribute('href')).toBe('https://example.com/a?b=1');
      expect(link?.getAttribute('target')).toBe('_blank');
      expect(link?.getAttribute('rel')).toBe('noopener noreferrer');
    }
    expect(dom('[x](mailto:a@example.com)').querySelector('a')?.getAttribute('href')).toBe(
      'mailto:a@example.com',
    );
  });

  it('turns images into links', () => {
    const root = dom(
      '![a "cat"](https://example.com/cat.png "t") and ![](https://example.com/b.png) ![x](data:image/png;base64,AA)',
    );
    expect(root.querySelectorAll('img, picture, source')).toHaveLength(0);
    const links = [...root.querySelectorAll('a')];
    expect(links.map((a) => a.getAttribute('href'))).toEqual([
      'https://example.com/cat.png',
      'https://example.com/b.png',
      null,
    ]);
    expect(links[0]?.textContent).toBe('Image: a "cat"');
  });

  it('escapes code and its language, and highlights known languages', () => {
    const root = dom(
      '```rust\nfn main() { let a = "<img src=x onerror=alert(1)>"; }\n```\n\n```"><script>\n<b>\n```',
    );
    expect(root.querySelectorAll('script, img, b')).toHaveLength(0);
    const [rust, odd] = root.querySelectorAll('.code');
    expect(rust?.querySelector('code')?.textContent).toBe(
      'fn main() { let a = "<img src=x onerror=alert(1)>"; }',
    );
    expect(rust?.querySelector('.hljs-keyword')?.textContent).toBe('fn');
    expect(odd?.querySelector('code')?.textContent).toBe('<b>');
    expect(odd?.querySelector('.code-head span')?.textContent).toBe('text');
    expect(root.querySelectorAll('button.copy-code')).toHaveLength(2);
  });

  it('renders lists, tables, task lists and numbering', () => {
    const root = dom('3. c\n4. d\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n- [x] done\n- [ ] open');
    expect(root.querySelector('ol')?.getAttribute('start')).toBe('3');
    expect(root.querySelector('td:last-child')?.getAttribute('align')).toBe('right');
    expect([...root.querySelectorAll('ul li')].map((li) => li.textContent?.trim())).toEqual([
      '☑ done',
      '☐ open',
    ]);
  });
});

describe('growing Markdown', () => {
  it('ends as the whole text renders, whatever its pieces', () => {
    for (const step of [1, 2, 7]) {
      const growing = new GrowingMarkdown();
      for (let end = 0; end <= SAMPLE.length; end += step) growing.update(SAMPLE.slice(0, end));
      const last = growing.update(`${SAMPLE}\n\nend\n`);
      expect(last).toEqual(renderMarkdown(`${SAMPLE}\n\nend\n`));
    }
  });

  it('loses no character at any length', () => {
    const growing = new GrowingMarkdown();
    const plain = 'One **two** three.\n\n```js\nlet a = 1;\n```\n\n- four\n- five\n\nsix';
    for (let end = 1; end <= plain.length; end += 1) {
      const source = plain.slice(0, end);
      const letters = (text: string) => text.replace(/[^a-z0-9=;]/gi, '');
      const text = dom('', growing.update(source)).textContent ?? '';
      const expected = letters(source.replace(/```j?s?\n?/g, ''));
      expect(letters(text.replace(/(js?|text)Copy/, ''))).toBe(expected);
    }
  });

  it('shows an unclosed fence as code, not yet highlighted', () => {
    const growing = new GrowingMarkdown();
    const blocks = growing.update('Look:\n\n```rust\nfn main() { // <script>');
    expect(blocks).toHaveLength(2);
    const code = dom('', blocks).querySelector('pre code');
    expect(code?.textContent).toBe('fn main() { // <script>');
    expect(code?.querySelector('span')).toBeNull();
    const closed = growing.update('Look:\n\n```rust\nfn main() { // <script>\n```\n\nDone');
    expect(dom('', closed).querySelector('.hljs-comment')?.textContent).toBe('// <script>');
  });

  it('does not render a finished block again', () => {
    const growing = new GrowingMarkdown();
    const first = growing.update('One.\n\n*Two');
    const later = growing.update('One.\n\n*Two* and\n\nthree');
    expect(later[0]).toBe(first[0]);
    expect(later).toHaveLength(3);
  });

  it('starts over with another text', () => {
    const growing = new GrowingMarkdown();
    growing.update('One.\n\nTwo.\n\nThree.\n');
    expect(growing.update('Uno.\n\nDos')).toEqual(renderMarkdown('Uno.\n\nDos'));
  });

  it('is as safe as the whole text', () => {
    const growing = new GrowingMarkdown();
    const source =
      '<img src=x onerror=alert(1)> [x](javascript:alert(1))\n\n<script>alert(1)</script>\n\nend';
    for (let end = 1; end <= source.length; end += 1) {
      const root = dom('', growing.update(source.slice(0, end)));
      expect(root.querySelectorAll('img, script, a[href]')).toHaveLength(0);
    }
  });
});

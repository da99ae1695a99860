import { describe, expect, it } from 'vitest';
import { GrowingMarkdown, renderMarkdown } from './markdown';
import { awaitsMath, loadMath } from './math';

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

describe('code', () => {
  it('is shown as code with its language and a button, never run or drawn', () => {
    const root = dom(
      '```mermaid\ngraph TD; A-->B\n```\n\n```html\n<script>alert(1)</script>\n```\n\n```svg\n<svg onload="x()"/>\n```',
    );
    expect(root.querySelectorAll('script, svg')).toHaveLength(0);
    const labels = [...root.querySelectorAll('.code-head span')].map(({ textContent }) => textContent);
    expect(labels).toEqual(['mermaid', 'html', 'svg']);
    expect(root.querySelectorAll('.code pre code')).toHaveLength(3);
    expect(root.querySelectorAll('button.copy-code')).toHaveLength(3);
    expect(root.querySelector('pre code')?.textContent).toBe('graph TD; A-->B');
  });

  it('shows marks of direction, and keeps their effect to themselves', () => {
    const code = dom('```js\nif (a /* \u202e */) b()\n```').querySelector('pre code');
    expect(code?.textContent).toBe('if (a /* \u202e */) b()');
    expect(code?.querySelector('.direction')?.getAttribute('title')).toBe('U+202E');
    const prose = dom('The file **\u202egnp.exe** and `\u202egnp.exe`, with \u2067isolates\u2069.');
    expect(prose.querySelectorAll('strong .direction, code .direction')).toHaveLength(2);
    expect(prose.querySelectorAll('.direction')).toHaveLength(2);
  });
});

describe('text', () => {
  it('shows marks that would reverse it, and leaves those that keep scripts apart', () => {
    const root = dom('Open \u202egnp.exe\u202c, [a\u202eb](https://example.com/), \u2067אב\u2069');
    const marks = [...root.querySelectorAll('.direction')].map((mark) => mark.getAttribute('title'));
    expect(marks).toEqual(['U+202E', 'U+202C', 'U+202E']);
  });

  it.each([
    ['quotations', `${'> '.repeat(5000)}deep`, 'blockquote'],
    ['lists', Array.from({ length: 400 }, (_, depth) => `${'  '.repeat(depth)}- x`).join('\n'), 'ul'],
    ['emphases', `${'**'.repeat(2000)}a${'**'.repeat(2000)}`, 'strong'],
  ])('without an end of %s within each other is cut where it is deep', (_name, source, selector) => {
    for (const blocks of [renderMarkdown(source), new GrowingMarkdown().update(source)]) {
      const found = dom('', blocks).querySelectorAll(selector).length;
      expect(found).toBeGreaterThan(5);
      expect(found).toBeLessThan(20);
    }
  });
});

describe('tables', () => {
  it('are in a box of their own, which scrolls, also with 200 columns', () => {
    const row = (cell: string) => `|${`${cell}|`.repeat(200)}`;
    const box = dom([row('a'), row('-'), row('b')].join('\n')).querySelector('.table');
    expect(box?.getAttribute('role')).toBe('group');
    expect(box?.getAttribute('aria-label')).toBe('Table');
    expect(box?.querySelectorAll('td')).toHaveLength(200);
  });
});

describe('headings', () => {
  it('are below those of the page', () => {
    const root = dom('# One\n\n## Two\n\n###### Six');
    expect([...root.children].map(({ tagName, className }) => `${tagName}.${className}`)).toEqual([
      'H3.level-1',
      'H4.level-2',
      'H6.level-6',
    ]);
  });
});

describe('formulas', () => {
  it('are their source until what draws them is loaded', async () => {
    const [html = ''] = renderMarkdown('\\(x^2\\)');
    expect(dom('', [html]).querySelector('code')?.textContent).toBe('\\(x^2\\)');
    expect(awaitsMath(html)).toBe(true);
    await loadMath();
    expect(awaitsMath(html)).toBe(false);
    expect(renderMarkdown('\\(x^2\\)')[0]).toContain('<msup>');
  });

  it.each([
    ['\\( \\)', 'Then \\(a_1 + b_2\\) holds.', 1, 0],
    ['\\[ \\]', 'Then\n\\[\n  a = b \\\\\n- c\n\\]\nholds.', 0, 1],
    ['$$ $$', '$$\n\\frac{1}{2}\n$$', 0, 1],
    ['$$ $$ in a line', 'Thus $$a$$ and so on', 0, 1],
    ['$ $', 'Where $x$ and $y_1$ are, and $\\alpha = 5$.', 3, 0],
    ['a fence', '```math\na^2\n```', 0, 1],
    ['a list', '1. First:\n\n   \\[ a \\]\n2. Then \\(b\\)', 1, 1],
    ['a table', '| a |\n|---|\n| \\(x\\) |', 1, 0],
    ['emphasis around one', '**Area: \\(a*b*c\\)**', 1, 0],
  ])('are drawn from %s', async (_name, source, inline, display) => {
    await loadMath();
    const root = dom(source);
    expect(root.querySelectorAll('math')).toHaveLength(inline + display);
    expect(root.querySelectorAll('.formula > math[display="block"]')).toHaveLength(display);
    expect(root.textContent).not.toMatch(/\\[()[\]]|\$/);
    for (const element of root.querySelectorAll('*')) expect(element.hasAttribute('style')).toBe(false);
  });

  it.each([
    'It costs $5 and $10.',
    'Between $5-$10, or US$ 3 to A$4.',
    'You pay $5 today and get $3.50 later',
    'Set $HOME/bin:$PATH first.',
    'He paid $20,000 and she $30,000.',
    '$ a $ and $$$',
    'Escaped \\$5$ is none',
    'I have $5, you have less$',
  ])('are not made of prices and variables: %s', async (source) => {
    await loadMath();
    const root = dom(source);
    expect(root.querySelector('math')).toBeNull();
    expect(root.textContent?.trim()).toBe(source.replace('\\$', '$'));
  });

  it('keep their backslashes where they are not recognised', async () => {
    await loadMath();
    for (const source of ['a \\( b \\\\ c \\, d', 'f \\] g \\{x\\}', 'C:\\\\Users\\x'])
      expect(dom(source).textContent?.trim()).toBe(source);
    expect(dom('\\*no\\* \\_x\\_ \\# 1\\.').textContent?.trim()).toBe('*no* _x_ # 1.');
  });

  it('are shown as their source if they are wrong, endless or forbidden', async () => {
    await loadMath();
    for (const tex of [
      '\\frac{a',
      '\\unknown',
      '\\def\\a{\\a\\a}\\a',
      '\\href{javascript:alert(1)}{x}',
      `${'{'.repeat(4000)}`,
      `${'x'.repeat(6000)}`,
    ]) {
      const root = dom(`\\(${tex}\\)`);
      expect(root.querySelector('code')?.textContent).toBe(`\\(${tex}\\)`);
      expect(root.querySelectorAll('math, a')).toHaveLength(0);
    }
  });

  it('cannot bring in elements or handlers', async () => {
    await loadMath();
    const root = dom(
      '\\(\\text{<img src=x onerror=alert(1)>} \\class{a}{b} \\html{<b>}\\) $\\text{</math><script>alert(1)</script>}$',
    );
    expect(root.querySelectorAll('img, script, b, [onerror]')).toHaveLength(0);
  });

  it('are text while they grow, whatever their lines look like', async () => {
    await loadMath();
    const growing = new GrowingMarkdown();
    const source = 'So:\n\n\\[\na\n- b\n= c\n\\]\n\nDone.\n';
    for (let end = source.indexOf('\\['); end < source.indexOf('\\]') + 2; end += 1) {
      const root = dom('', growing.update(source.slice(0, end)));
      expect(root.querySelectorAll('ul, h3, h4, math')).toHaveLength(0);
    }
    expect(growing.update(source)).toEqual(renderMarkdown(source));
    expect(dom('', growing.update(source)).querySelectorAll('math')).toHaveLength(1);
  });

  it('without an end do not hang the page', async () => {
    await loadMath();
    for (const [opener, length] of [
      ...['\\(', '\\[', '$$', '$a '].flatMap((opener) => [
        [opener, 9000] as const,
        [opener, 1_000_000] as const,
      ]),
      ...['\\(\n', '\\[ a\n'].map((opener) => [opener, 9000] as const),
    ]) {
      const source = opener.repeat(length / opener.length);
      const text = dom(source).textContent ?? '';
      expect(text.replace(/\s/g, ''), `${opener}, ${length}`).toBe(source.replace(/\s/g, ''));
    }
  });
});

describe('growing Markdown', () => {
  it('without an end parses again only its last part', () => {
    for (const piece of ['word ', 'a', '\u{1f999}']) {
      const growing = new GrowingMarkdown();
      const source = piece.repeat(100_000 / piece.length);
      let blocks: string[] = [];
      let before = '';
      for (let end = 20_000; end <= source.length; end += 20_000) {
        blocks = growing.update(source.slice(0, end));
        if (before !== '') expect(blocks[0]).toBe(before);
        if (blocks.length > 1) before = blocks[0] as string;
      }
      expect(blocks.length).toBeGreaterThan(2);
      for (const block of blocks) expect(block.length).toBeLessThan(200_000);
      const letters = (text: string) => text.replace(/[\s>-]/g, '');
      expect(letters(dom('', blocks).textContent ?? '')).toBe(letters(source));
    }
  });

  it('goes on with code of which a part was closed for its length', () => {
    const growing = new GrowingMarkdown();
    const code = 'let a = 1;\n'.repeat(8000);
    for (let end = 0; end <= code.length; end += 11_000) growing.update(`\`\`\`text\n${code.slice(0, end)}`);
    const root = dom('', growing.update(`\`\`\`text\n${code}`));
    expect([...root.children].every((child) => child.matches('.code'))).toBe(true);
    const parts = [...root.querySelectorAll('pre code')].map(({ textContent }) => textContent?.trim());
    expect(parts.join('\n')).toBe(code.trim());
  });

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
      expect(letters(text.replace(/(js?|text)WrapCopy/, ''))).toBe(expected);
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

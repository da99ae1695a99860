import './mathml.css';
import temml from 'temml';

/** As deep as macros may expand: `\def\a{\a\a}\a` ends there. */
const MOST_EXPANSIONS = 200;

/** Converts TeX to MathML without style attributes, which the page's policy forbids. Throws at a mistake in the TeX. */
export function renderMath(tex: string, display: boolean): string {
  const math = temml.renderToString(tex, {
    displayMode: display,
    throwOnError: true,
    trust: false,
    strict: false,
    maxSize: [20, 200],
    maxExpand: MOST_EXPANSIONS,
  });
  return math.replace(/<(\w+)([^<>]*?) style="([^"]*)"([^<>]*)>/g, (_tag, name, before, style, after) => {
    const attributes = `${before}${after}`;
    const classes = classesOf(style);
    if (classes === '') return `<${name}${attributes}>`;
    return attributes.includes(' class="')
      ? `<${name}${attributes.replace(' class="', ` class="${classes} `)}>`
      : `<${name}${attributes} class="${classes}">`;
  });
}

/** The styles that carry meaning, as classes of `mathml.css`: spaces between columns, frames, and columns that fill the line. */
const CLASSES: [RegExp, string][] = [
  [/padding-left:0em/, 'tml-flush-left'],
  [/padding-left:1em/, 'tml-apart-left'],
  [/padding-left:2em/, 'tml-far-left'],
  [/padding-right:0em/, 'tml-flush-right'],
  [/(^|;)padding:0;/, 'tml-flush'],
  [/(^|;)width:100%/, 'tml-wide'],
  [/(^|;)width:50%/, 'tml-half'],
  [/border:1px solid/, 'tml-frame'],
  [/math-depth:0/, 'tml-shallow'],
];

function classesOf(style: string): string {
  return CLASSES.filter(([rule]) => rule.test(style))
    .map(([, name]) => name)
    .join(' ');
}

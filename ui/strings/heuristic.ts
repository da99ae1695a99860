import type { Message } from 'wuchale';

type Details = Message['details'];

/** Attributes and properties whose text is not shown. */
const NO_WORDS_IN =
  /^(class|id|for|name|type|role|href|src|rel|target|dir|lang|value|state|icon|align|figure|testid|tone|accept|step|autocomplete|spellcheck|inputmode|enterkeyhint|controls|describedby|tabindex|style|form|method|d|viewBox|points|transform|data-.*|aria-(controls|describedby|labelledby|live|haspopup|current|autocomplete|activedescendant|owns)|style:.*)$/;

const NO_WORDS_IN_ELEMENT = new Set(['script', 'style', 'path', 'code', 'pre', 'kbd', 'svg']);

/** Functions whose arguments are names, selectors, paths and patterns. */
const NO_WORDS_FOR =
  /(^|\.)(querySelector(All)?|closest|matches|matchMedia|getElementById|createElement|createElementNS|(add|remove)EventListener|(set|get|remove|toggle)Attribute|setProperty|getContext|addHook|includes|startsWith|endsWith|indexOf|split|replace|replaceAll|match|matchAll|save|retype|invoke|RegExp|MediaQuery|fetch|stream|toLocale(Date|Time)?String|color)$|^console\.|(^|\.)api\.|^String\.raw$/;

/** Texts that look like words and are names, keys or parts of markup. */
const NO_WORDS = new Set([
  'Alt',
  'Anthropic',
  'AudioContext',
  'Bearer #',
  'Chats #',
  'Cmd',
  'Control',
  'Ctrl',
  'Enter',
  'Escape',
  'Files',
  'Groq',
  'Macintosh',
  'Meta',
  'Mistral',
  'Notification',
  'Shift',
  'Super',
  'Ollama',
  'Backspace',
  'Tab',
  'Tierbar',
  'Answer with the word OK.',
  'LM Studio',
  'Hugging Face',
  'before #',
  'after #',
  'button small',
  'ChatGPT Open WebUI LM Studio',
  'heading #',
  'load #',
  'noopener noreferrer',
  'unload #',
  'use #',
  'use # #',
]);

/** The texts that a file compares with: a key or a state, never a label. */
export function comparedIn(source: string): Set<string> {
  const found = source.matchAll(/(?:[!=]==\s*|\bcase\s+)(['"])((?:(?!\1).)*)\1/g);
  return new Set([...found].map(([, , text]) => text ?? ''));
}

/** Whether the text is shown to the user, in which `#` stands for each value. */
export function isWords(text: string, details: Details, except: Set<string>): boolean {
  const { scope, element, attribute, call } = details;
  if (!/\p{L}/u.test(text)) return false;
  if (scope === 'markup') return !NO_WORDS_IN_ELEMENT.has(element ?? '') && text !== 'Tierbar';
  if (attribute !== undefined && NO_WORDS_IN.test(attribute)) return false;
  if (except.has(text.trim())) return false;
  if (scope === 'script' && (NO_WORDS.has(text.trim()) || NO_WORDS_FOR.test(call ?? ''))) return false;
  return hasWords(text.trim());
}

function hasWords(text: string): boolean {
  // Markup, addresses, paths, commands, CSS, Markdown and the drawings of icons.
  if (/[<>{}\\=|]|:\/\/|^tierbar |-\w+:|^\w+:\w|^M[\d #]|^m[\d#]|^\d+px/.test(text)) return false;
  if (/^[[/.~*-]/.test(text) && !/(^|\s)\p{Ll}{2,}(\s|$)/u.test(text)) return false;
  // One word counts with a capital: the others are names of states, events and the like.
  if (!/\s/.test(text)) return /^[“#]?\p{Lu}\p{Ll}+(?:[-’]\p{L}+)*[”#]?[….:?!]?$/u.test(text);
  return text.split(/[\s#(),.;:“”/+]+/).some((word) => /^\p{L}[\p{L}’-]*[…?!%]?$/u.test(word));
}

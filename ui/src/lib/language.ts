import { type CompiledElement, compileTranslation } from 'wuchale/compiler';

/** The languages of the window. English is that of the source; each other one has a catalog in `src/locales`. */
export const LANGUAGES = { en: 'English', de: 'Deutsch', fr: 'Français' } as const;

export type Language = keyof typeof LANGUAGES;
/** `auto` follows the computer, or the browser. */
export type LanguageChoice = Language | 'auto';

interface Catalog {
  /** The translations by the English text, with its context if it has one; of plural forms, each. */
  default: Record<string, CompiledElement | CompiledElement[]>;
  /** Which plural form a number takes. */
  plural(n: number): number;
}

const CATALOGS: Record<Exclude<Language, 'en'>, () => Promise<Catalog>> = {
  de: () => import('../locales/de.po'),
  fr: () => import('../locales/fr.po'),
};

const CHOICE = 'tierbar-language';

let current: Language = 'en';
let catalog: Catalog = { default: {}, plural: (n) => (n === 1 ? 0 : 1) };
const english = new Map<string, CompiledElement>();

/** The page's language, which is also that of its dates and numbers. */
export function language(): Language {
  return current;
}

/** What is chosen in this app, or this browser. */
export function languageChoice(): LanguageChoice {
  try {
    const kept = localStorage.getItem(CHOICE);
    return isLanguage(kept) ? kept : 'auto';
  } catch {
    return 'auto';
  }
}

/** Keeps the choice. Pages have their language from when they were loaded. */
export function chooseLanguage(choice: LanguageChoice): void {
  try {
    if (choice === 'auto') localStorage.removeItem(CHOICE);
    else localStorage.setItem(CHOICE, choice);
  } catch {
    // Without storage, the computer's language holds.
  }
}

/** Calls back when another window has chosen a language. */
export function onLanguageChoice(changed: () => void): void {
  addEventListener('storage', ({ key }) => {
    if (key === CHOICE && preferred(navigator.languages) !== current) changed();
  });
}

/** The language that is chosen, or the first of the wanted ones that there is. */
export function preferred(wanted: readonly string[]): Language {
  const choice = languageChoice();
  if (choice !== 'auto') return choice;
  return wanted.map((tag) => tag.toLowerCase().split(/[-_]/)[0] ?? '').find(isLanguage) ?? 'en';
}

function isLanguage(text: string | null): text is Language {
  return text !== null && Object.hasOwn(LANGUAGES, text);
}

/** Has the page speak its language. What has texts must be loaded afterwards, as some are constants. */
export async function startLanguage(wanted = preferred(navigator.languages)): Promise<void> {
  try {
    if (wanted !== 'en') catalog = await CATALOGS[wanted]();
    current = wanted;
  } catch {
    // A page that can't load its catalog is better in English than not there.
  }
  document.documentElement.lang = current;
}

function parts(key: string): CompiledElement {
  const found = catalog.default[key] as CompiledElement | undefined;
  if (found !== undefined) return found;
  let source = english.get(key);
  if (source === undefined) {
    source = compileTranslation(key.split(CONTEXT)[0] ?? key, '');
    english.set(key, source);
  }
  return source;
}

/** Returns a text of the host that the catalogs know, such as a model's description, in the page's language; any other as it is. */
export function translated(text: string): string {
  const found = catalog.default[text];
  return typeof found === 'string' ? found : text;
}

/** Between a text and its context, as the extraction joins them. */
const CONTEXT = '\n';

/** Fills in values; a value that is not there leaves nothing, as in markup. */
function join(pieces: CompiledElement, values: readonly unknown[], from: number): string {
  if (typeof pieces === 'string') return pieces;
  return pieces
    .slice(from)
    .map((piece) => (typeof piece === 'number' ? String(values[piece] ?? '') : piece))
    .join('');
}

/**
 * Looks up an English text with `{0}`, `{1}`… for its values. The build writes the calls; see `strings/extract.ts`. The
 * properties are those that the extraction uses: pieces for markup, a nested piece, plural forms and their rule.
 */
export const translate = Object.assign(
  (key: string, values: readonly unknown[] = []) => join(parts(key), values, 0),
  {
    c: (key: string) => {
      const pieces = parts(key);
      return typeof pieces === 'string' ? [pieces] : pieces;
    },
    x: (pieces: CompiledElement, values: readonly unknown[] = []) => join(pieces, values, 1),
    p: (key: string) => (catalog.default[key] as string[] | undefined) ?? key.split('\n'),
    _: { p: (n: number) => catalog.plural(n) },
  },
);

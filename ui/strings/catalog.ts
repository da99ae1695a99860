import { readdirSync, readFileSync } from 'node:fs';
import PO from 'pofile';
import { getKey } from 'wuchale';
import { compileTranslation, isEquivalent } from 'wuchale/compiler';
import { extract, hasTexts } from './extract.ts';

/** The root of the window's source, from the folder in which its commands run. */
const ROOT = 'src';

/** The list of models, whose descriptions the window shows. */
const MODELS = '../src-tauri/crates/library/src/catalog.json';

/** The apps that can be connected, whose notes it shows. */
const CLIENTS = '../src-tauri/crates/connect/src/clients';

/** One text of the source. */
export interface Text {
  /** The English text; with plural forms, each. */
  forms: string[];
  context: string | undefined;
  files: string[];
  /** What the placeholders stand for, such as `{0}: tier.id`. */
  values: string[];
}

/** Reads the texts of the window, by key, and those that only a part of a sentence can be. */
export async function readSource(): Promise<{ texts: Map<string, Text>; fragments: string[] }> {
  const texts = new Map<string, Text>();
  const parts: string[] = [];
  const paths = readdirSync(ROOT, { recursive: true }).map(String).filter(hasTexts).sort();
  for (const path of paths) {
    const file = `${ROOT}/${path}`;
    const { messages, fragments } = await extract(readFileSync(file, 'utf8'), file);
    parts.push(...fragments.map((text) => `“${text}” of ${file}`));
    for (const { msgStr: forms, context, placeholders } of messages) {
      const key = getKey(forms, context);
      const text = texts.get(key) ?? { forms, context, files: [], values: [] };
      texts.set(key, text);
      if (!text.files.includes(file)) text.files.push(file);
      if (text.values.length === 0)
        text.values = placeholders.map(([n, value]) => `{${n}}: ${value.replace(/\s+/g, ' ')}`);
    }
  }
  const clients = readdirSync(CLIENTS).sort();
  for (const path of [MODELS, `${CLIENTS}.rs`, ...clients.map((name) => `${CLIENTS}/${name}`)]) {
    const source = readFileSync(path, 'utf8');
    const files = [path.replace('../', '')];
    for (const text of path === MODELS ? textsOfModels(source) : notesOfClients(source))
      if (!texts.has(text)) texts.set(text, { forms: [text], context: undefined, files, values: [] });
  }
  return { texts, fragments: parts };
}

function textsOfModels(json: string): string[] {
  const { models } = JSON.parse(json) as { models: { about: string; languages: string | null }[] };
  return models.flatMap(({ about, languages }) => (languages === null ? [about] : [about, languages]));
}

/** A note with a value in it, such as `{key}`, is shown in English. One that several clients share is a constant. */
function notesOfClients(rust: string): string[] {
  const shared = [...rust.matchAll(/\bconst \w+: &str = "([^"\\]+)";/g)].map(([, text]) => text ?? '');
  const lists = [...rust.matchAll(/\bnotes: &\[((?:"[^"]*"|[^"\]])*)\]/g)].map(([, list]) => list ?? '');
  const notes = [...lists.join().matchAll(/"([^"\\]+)"/g)].map(([, text]) => text ?? '');
  return [...shared, ...notes].filter((text) => !text.includes('{'));
}

export function keyOf({ msgid, msgid_plural, msgctxt }: PO['items'][number]): string {
  return getKey(msgid_plural ? [msgid, msgid_plural] : [msgid], msgctxt ?? undefined);
}

/** Brings a catalog up to date: new texts come without a translation, and what the source no longer has goes. */
export function update(catalog: PO, texts: Map<string, Text>): void {
  const { headers } = catalog;
  catalog.headers = Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== ''));
  const known = new Map(catalog.items.map((item) => [keyOf(item), item]));
  catalog.items = [...texts].map(([key, { forms, context, files, values }]) => {
    const item = known.get(key) ?? new PO.Item();
    item.msgid = forms[0] ?? '';
    if (forms[1] !== undefined) item.msgid_plural = forms[1];
    if (context !== undefined) item.msgctxt = context;
    item.references = files;
    item.extractedComments = values;
    item.obsolete = false;
    return item;
  });
}

/** What is wrong with a catalog, a line for each text. */
export function problems(catalog: PO, texts: Map<string, Text>): string[] {
  const known = new Map(catalog.items.map((item) => [keyOf(item), item]));
  const found: string[] = [];
  for (const [key, { forms, files }] of texts) {
    const item = known.get(key);
    const wanted = forms.length > 1 ? pluralCount(catalog) : 1;
    const at = `“${forms[0]}” of ${files[0]}`;
    if (!item || item.msgstr.filter((form) => form.trim() !== '').length < wanted || item.flags.fuzzy)
      found.push(`${at} has no translation`);
    else if (!item.msgstr.every((form) => keepsValues(forms.at(-1) ?? '', form)))
      found.push(`${at} has other placeholders than “${item.msgstr.join('” / “')}”`);
    else if (!item.msgstr.every((form) => sameSpace(forms[0] ?? '', form)))
      found.push(`${at} begins or ends with a space, or doesn’t, unlike “${item.msgstr[0]}”`);
  }
  const obsolete = [...known.keys()].filter((key) => !texts.has(key));
  return [...found, ...obsolete.map((key) => `“${key}” is no longer in the source`)];
}

/** A plural form may leave its number out, as “one model” does. */
function keepsValues(source: string, translation: string): boolean {
  const plain = (text: string) => text.replaceAll('#', '');
  return isEquivalent(
    filled(compileTranslation(plain(source), '')),
    filled(compileTranslation(plain(translation), '')),
  );
}

/** A text whose values stand alone compares as one that has words around them. */
function filled(compiled: ReturnType<typeof compileTranslation>): ReturnType<typeof compileTranslation> {
  return typeof compiled === 'string' ? compiled : ['', ...compiled];
}

function sameSpace(source: string, translation: string): boolean {
  return [/^\s/, /\s$/].every((edge) => edge.test(source) === edge.test(translation));
}

function pluralCount({ headers }: PO): number {
  return Number(/nplurals=(\d+)/.exec(headers['Plural-Forms'] ?? '')?.[1] ?? 2);
}

/** Turns a catalog into the module that a page loads. */
export function compile(source: string): string {
  const catalog = PO.parse(source);
  const texts = catalog.items
    .filter((item) => !item.obsolete && !item.flags.fuzzy && item.msgstr.some((form) => form !== ''))
    .map((item) => [
      keyOf(item),
      item.msgid_plural ? item.msgstr : compileTranslation(item.msgstr[0] ?? '', item.msgid),
    ]);
  const rule = /plural=([\dn\s%!=<>?:()&|+-]+);?\s*$/.exec(catalog.headers['Plural-Forms'] ?? '')?.[1];
  return `export default ${JSON.stringify(Object.fromEntries(texts))};
export const plural = (n) => Number(${rule ?? 'n !== 1'});`;
}

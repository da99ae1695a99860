// @vitest-environment node
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import PO from 'pofile';
import { beforeAll, describe, expect, it } from 'vitest';
import { problems, readSource, type Text, update } from './catalog.ts';

const LOCALES = 'src/locales';
const catalogs = readdirSync(LOCALES);
let texts: Map<string, Text>;
let fragments: string[];

beforeAll(async () => {
  ({ texts, fragments } = await readSource());
  // A guard against hanging, not a measure.
}, 60_000);

it('has no sentence that is put together from parts', () => {
  expect(
    fragments,
    'Write each sentence whole: a part that begins or ends with a space can’t be translated',
  ).toEqual([]);
});

describe.each(catalogs)('%s', (name) => {
  const path = `${LOCALES}/${name}`;

  // `npm run strings`
  if (process.env.TIERBAR_WRITE_STRINGS)
    it('is brought up to date', () => {
      const catalog = PO.parse(readFileSync(path, 'utf8'));
      update(catalog, texts);
      writeFileSync(path, `${catalog.toString()}\n`);
    });

  it('translates each text and keeps its placeholders', () => {
    const found = problems(PO.parse(readFileSync(path, 'utf8')), texts);
    expect(found, `Run npm run strings, then translate what ${path} lacks`).toEqual([]);
  });
});

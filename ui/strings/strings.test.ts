// @vitest-environment node
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import PO from 'pofile';
import { beforeAll, describe, expect, it } from 'vitest';
import { problems, readSource, type Text, update } from './catalog';

const LOCALES = 'src/locales';
const catalogs = readdirSync(LOCALES);
let texts: Map<string, Text>;

beforeAll(async () => {
  texts = await readSource();
});

describe.each(catalogs)('%s', (name) => {
  const path = `${LOCALES}/${name}`;

  // `npm run strings`
  it.runIf(process.env.TIERBAR_WRITE_STRINGS)('is brought up to date', () => {
    const catalog = PO.parse(readFileSync(path, 'utf8'));
    update(catalog, texts);
    writeFileSync(path, `${catalog.toString()}\n`);
  });

  it('translates each text and keeps its placeholders', () => {
    const found = problems(PO.parse(readFileSync(path, 'utf8')), texts);
    expect(found, `Run npm run strings, then translate what ${path} lacks`).toEqual([]);
  });
});

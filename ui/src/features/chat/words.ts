/** Where something is found in a text: from and up to, but without, a place. */
export type Hit = readonly [number, number];

/** Scripts that put no spaces between words, and Korean, whose words have endings: what is searched is found anywhere, as the host does. */
const WITHOUT_SPACES = '\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}\\p{Script=Hangul}ー々';

/** A text without case and accents. */
export function fold(text: string): string {
  return text.normalize('NFD').replace(/\p{M}/gu, '').toLowerCase().normalize('NFC');
}

/** The patterns of a search's words, of which each may be the beginning of one. */
export function patternsOfSearch(search: string): RegExp[] {
  return fold(search)
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== '')
    .map((word) => {
      const anywhere = new RegExp(`^[${WITHOUT_SPACES}]`, 'u').test(word);
      const begin = anywhere ? '' : `(?:(?<![\\p{L}\\p{N}])|(?<=[${WITHOUT_SPACES}]))`;
      return new RegExp(begin + word, 'gu');
    });
}

/** The pattern of a phrase, which may begin and end within words. */
export function patternOfPhrase(phrase: string): RegExp[] {
  const folded = fold(phrase.trim());
  if (folded === '') return [];
  return [new RegExp(folded.replace(/[.*+?^${}()|[\]\\/-]/g, '\\$&').replace(/\s+/g, '\\s+'), 'gu')];
}

/** Where the patterns are found, in order and without overlaps. Case and accents do not count. */
export function hitsOf(text: string, patterns: RegExp[]): Hit[] {
  // The text as it is compared, and for each of its characters the place in the text.
  let plain = '';
  const places: number[] = [];
  let place = 0;
  for (const character of text) {
    const folded = fold(character);
    plain += folded;
    for (let count = 0; count < folded.length; count += 1) places.push(place);
    place += character.length;
  }
  const found = patterns
    .flatMap((pattern) => [...plain.matchAll(pattern)])
    .filter(({ 0: { length } }) => length > 0)
    .map(({ index, 0: { length } }): Hit => [places[index] ?? 0, places[index + length] ?? text.length])
    .sort(([a], [b]) => a - b);
  const hits: Hit[] = [];
  let done = 0;
  for (const hit of found) {
    if (hit[0] < done) continue;
    hits.push(hit);
    done = hit[1];
  }
  return hits;
}

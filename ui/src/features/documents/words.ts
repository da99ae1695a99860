import { count, plural, sentence } from '../../lib/format';
import type { DocumentSource, Documents, Indexing, Passage } from '../../platform/openapi';

/** Where in its document a passage is: `Methods › Data, page 3`. A heading that is the document’s title is not repeated. */
export function placeOf({ title, headings, page, line }: Passage): string {
  const parts = [headings.slice(headings[0] === title ? 1 : 0).join(' › ')];
  if (page !== null) parts.push(`page ${page}`);
  else if (line !== null) parts.push(`line ${line}`);
  return parts.filter((part) => part !== '').join(', ');
}

/** What became of a file or folder: `12 documents · 340 passages`. */
export function describeSource(source: DocumentSource): string {
  const parts: string[] = [];
  if (source.is_missing) parts.push('Not connected');
  if (source.is_folder) parts.push(plural(source.indexed, ['# document', '# documents']));
  parts.push(plural(source.passages, ['# passage', '# passages']));
  if (source.waiting > 0) parts.push(`${count(source.waiting)} to read`);
  return parts.join(' · ');
}

/** How many of its files cannot be read, or have a note; '' for none. */
export function describeNotices({ failed, noticed }: DocumentSource): string {
  const parts: string[] = [];
  if (failed > 0) parts.push(plural(failed, ['# file can’t be read', '# files can’t be read']));
  if (noticed > 0) parts.push(plural(noticed, ['# file has a note', '# files have notes']));
  return parts.join(' · ');
}

/** What the indexer does, in a sentence, and in another how many passages the embedder’s search leaves out. */
export function describeDocuments({ indexing, sources }: Documents): string {
  const unread = sources.reduce((sum, source) => sum + source.without_vectors, 0);
  const now = describeIndexing(indexing);
  if (indexing.embedder === null || unread === 0) return now;
  return `${now} ${plural(unread, ['# passage is found by its words only.', '# passages are found by their words only.'])}`;
}

/** What the indexer does, in a sentence. */
export function describeIndexing({ state, file, waiting, embedder, problem }: Indexing): string {
  const left = count(waiting);
  if (state === 'paused') return `Paused. Files left to read: ${left}.`;
  if (problem !== null) return sentence(problem);
  const name = file?.split('/').at(-1);
  if (name) return `Reading “${name}”. Files left: ${left}.`;
  if (state === 'indexing') return `Files left to read: ${left}.`;
  if (embedder === null)
    return 'Search matches words. To search by meaning too, choose an embedding model in Models.';
  return 'All documents are read.';
}

/** A piece of an answer: words, or the number of a passage. */
export type Piece = { words: string } | { number: number };

/** Splits an answer at its citations. Numbers of passages that are not there stay words. */
export function pieces(answer: string, numbers: number[]): Piece[] {
  const found: Piece[] = [];
  for (const part of answer.split(/(\[\d{1,4}\])/)) {
    const number = Number(/^\[(\d+)\]$/.exec(part)?.[1] ?? 0);
    if (numbers.includes(number)) found.push({ number });
    else if (part !== '') found.push({ words: part });
  }
  return found;
}

import { describe, expect, it } from 'vitest';
import { type Entry, findEntries } from './match';

const entry = (label: string, words?: string): Entry => ({
  id: label,
  label,
  group: 'x',
  words,
  run: () => {},
});
const found = (query: string, ...entries: (string | Entry)[]) =>
  findEntries(
    entries.map((each) => (typeof each === 'string' ? entry(each) : each)),
    query,
  ).map(({ label }) => label);

describe('the palette', () => {
  it('finds letters in their order, without regard to case and accents', () => {
    expect(found('nch', 'New Chat', 'Delete Chat')).toEqual(['New Chat']);
    expect(found('GENEVE', 'Genève', 'Rhône')).toEqual(['Genève']);
    expect(found('new  chat', 'New Chat')).toEqual(['New Chat']);
    expect(found('xyz', 'New Chat')).toEqual([]);
  });

  it('prefers beginnings of words and neighbours', () => {
    expect(found('set', 'Reset Everything Today', 'Open Settings')[0]).toBe('Open Settings');
    expect(found('pa', 'Export as Markdown a', 'Pause')[0]).toBe('Pause');
    expect(found('import', 'I am part of a rather long title', 'Import Chats…')[0]).toBe('Import Chats…');
  });

  it('finds further words, after labels', () => {
    expect(found('sleep', entry('Pause', 'sleep stop'), 'Sleep Well')).toEqual(['Sleep Well', 'Pause']);
  });

  it('shows everything in its order without a query, and at most 50 entries', () => {
    expect(found(' ', 'b', 'a')).toEqual(['b', 'a']);
    const many = Array.from({ length: 10_000 }, (_, index) => entry(`Chat ${index}`));
    expect(findEntries(many, 'chat')).toHaveLength(50);
  });
});

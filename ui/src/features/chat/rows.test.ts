import { describe, expect, it } from 'vitest';
import type { ChatSummary } from '../../platform/openapi';
import { heightOf, markWords, rowsOf, visibleRows } from './rows';

const now = new Date('2026-11-26T12:00:00Z');

function chat(id: string, more: Partial<ChatSummary> = {}): ChatSummary {
  const at = '2026-11-26T08:00:00Z';
  return {
    id,
    title: id,
    model: 'auto',
    created_at: at,
    updated_at: at,
    when_full: 'refuse',
    pinned: false,
    instructions: '',
    sampling: {},
    thinking: null,
    turn: null,
    ...more,
  };
}

const keys = (rows: { key: string }[]) => rows.map(({ key }) => key);

describe('the rows of the list', () => {
  it('have pinned chats first and headings by day', () => {
    const rows = rowsOf(
      [
        chat('p', { pinned: true, updated_at: '2020-01-01T00:00:00Z' }),
        chat('a'),
        chat('b'),
        chat('c', { updated_at: '2026-01-01T00:00:00Z' }),
      ],
      now,
    );
    expect(keys(rows)).toEqual(['heading Pinned', 'p', 'heading Today', 'a', 'b', 'heading Older', 'c']);
    expect(rows.at(-1)).toMatchObject({ position: 4, top: heightOf(rows) - 33 });
  });

  it('of a search have no headings', () => {
    const found = { message: 1, excerpt: 'x' };
    expect(keys(rowsOf([chat('a', { found }), chat('b', { found, pinned: true })], now))).toEqual(['a', 'b']);
  });

  it('are drawn near the visible part, with the focused one', () => {
    const rows = rowsOf(
      Array.from({ length: 10_000 }, (_, index) => chat(`c${index}`)),
      now,
    );
    const visible = visibleRows(rows, 100_000, 500, 'c3');
    expect(visible.length).toBeLessThan(50);
    expect(visible[0]?.key).toBe('c3');
    expect(visible.some(({ top }) => top <= 100_000)).toBe(true);
    expect(visible.some(({ top }) => top >= 100_500)).toBe(true);
    expect(keys(visibleRows(rows, 0, 500, 'c3')).filter((key) => key === 'c3')).toHaveLength(1);
    expect(visibleRows([], 0, 500, null)).toEqual([]);
  });
});

describe('the words of a search', () => {
  it('are marked without regard to case and accents', () => {
    expect(markWords('Le Rhône à Genève', 'RHONE genev')).toEqual([
      { text: 'Le ', hit: false },
      { text: 'Rhône', hit: true },
      { text: ' à ', hit: false },
      { text: 'Genèv', hit: true },
      { text: 'e', hit: false },
    ]);
  });

  it('may be anything', () => {
    expect(markWords('a+b', '+ ( [')).toEqual([{ text: 'a+b', hit: false }]);
    expect(markWords('', 'x')).toEqual([]);
    expect(markWords('cat concat', 'cat')).toEqual([
      { text: 'cat', hit: true },
      { text: ' concat', hit: false },
    ]);
  });
});

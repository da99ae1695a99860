import { describe, expect, it } from 'vitest';
import { type Turn, unsent } from './turns';
import { Heights, SHORT } from './viewport';

const turns = (count: number): Turn[] =>
  Array.from({ length: count }, (_, index) => {
    const question = { ...unsent('A question', null), id: index + 1 };
    return { key: index + 1, question, questions: [question], answers: [], shown: null };
  });
/** Heights of turns that are each 100 pixels high. */
const measured = (all: Turn[]) => {
  const heights = new Heights();
  for (const turn of all) heights.note(turn, 100);
  return heights;
};

describe('the turns of a chat that are mounted', () => {
  it('are all of a short one', () => {
    const short = turns(SHORT);
    expect(new Heights().near(short, { top: 0, height: 500 }, true)).toEqual({ from: 0, to: SHORT });
  });

  it('are those near the end of a long one, also before anything is measured', () => {
    const long = turns(5000);
    expect(measured(long).near(long, { top: 0, height: 500 }, true)).toEqual({ from: 4980, to: 5000 });
    const { from, to } = new Heights().near(long, { top: 0, height: 0 }, true);
    expect(to).toBe(5000);
    expect(from).toBeGreaterThan(4900);
  });

  it('are those around the visible part once one scrolls', () => {
    const long = turns(5000);
    const near = (top: number) => measured(long).near(long, { top, height: 500 }, false);
    expect(near(0)).toEqual({ from: 0, to: 20 });
    expect(near(250_000)).toEqual({ from: 2484, to: 2520 });
    expect(near(10_000_000)).toEqual({ from: 4999, to: 5000 });
  });

  it('leave gaps as high as what is not mounted, also around the turn with the focus', () => {
    const long = turns(100);
    const rows = measured(long).rows(long, [
      { from: 50, to: 52 },
      { from: 10, to: 11 },
    ]);
    expect(rows.map((row) => ('gap' in row ? row.gap : row.index))).toEqual([1000, 10, 3900, 50, 51, 4800]);
    expect(new Set(rows.map(({ key }) => key)).size).toBe(rows.length);
  });

  it('report by how much they differ from what they were taken for', () => {
    const [turn] = turns(1) as [Turn];
    const heights = new Heights();
    const estimate = heights.of(turn);
    expect(heights.note(turn, estimate + 30)).toBe(30);
    expect(heights.note(turn, estimate + 30)).toBe(0);
    expect(heights.of(turn)).toBe(estimate + 30);
  });
});

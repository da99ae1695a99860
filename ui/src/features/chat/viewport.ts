import type { Turn } from './turns';

/** A chat of so few turns is shown whole: the browser's own search finds all of it. */
export const SHORT = 40;

/** What is shown beyond the visible part, in CSS pixels, each way. */
const MARGIN = 1500;

/** The height of a window, until it is measured. */
const SCREEN = 900;

/** The visible part of a scrolling column, in CSS pixels. */
export interface Viewport {
  top: number;
  height: number;
}

/** The turns from `from` up to, but without, `to`. */
export interface Range {
  from: number;
  to: number;
}

/** Turns to mount, or the height of those that are not. */
export type Row = { gap: number; key: string } | { turn: Turn; index: number; key: number };

/** Heights of turns, measured where they have been shown and estimated elsewhere. */
export class Heights {
  #measured = new Map<number, number>();

  of(turn: Turn): number {
    return this.#measured.get(turn.key) ?? estimate(turn);
  }

  /** Notes a height. Returns by how much it differs from what it was taken for. */
  note(turn: Turn, height: number): number {
    const before = this.of(turn);
    this.#measured.set(turn.key, height);
    return height - before;
  }

  /** The turns to mount: those near the visible part, or near the end. */
  near(turns: Turn[], { top, height }: Viewport, atEnd: boolean): Range {
    if (turns.length <= SHORT) return { from: 0, to: turns.length };
    return atEnd ? this.#last(turns, height || SCREEN) : this.#around(turns, top, height || SCREEN);
  }

  #last(turns: Turn[], height: number): Range {
    let from = turns.length;
    for (let above = 0; from > 0 && above < height + MARGIN; ) above += this.of(turns[--from] as Turn);
    return { from, to: turns.length };
  }

  #around(turns: Turn[], top: number, height: number): Range {
    let from = 0;
    let end = this.of(turns[0] as Turn);
    while (from < turns.length - 1 && end < top - MARGIN) end += this.of(turns[++from] as Turn);
    let to = from + 1;
    while (to < turns.length && end < top + height + MARGIN) end += this.of(turns[to++] as Turn);
    return { from, to };
  }

  /** The column, row by row: the turns of the ranges, and gaps as high as what lies between. */
  rows(turns: Turn[], ranges: Range[]): Row[] {
    const rows: Row[] = [];
    let gap = 0;
    turns.forEach((turn, index) => {
      if (!ranges.some(({ from, to }) => index >= from && index < to)) {
        gap += this.of(turn);
        return;
      }
      if (gap > 0) rows.push({ gap, key: `before ${turn.key}` });
      gap = 0;
      rows.push({ turn, index, key: turn.key });
    });
    if (gap > 0) rows.push({ gap, key: 'end' });
    return rows;
  }
}

function estimate({ question, shown }: Turn): number {
  const lines = (text: string | undefined, width: number) => Math.ceil((text?.length ?? 0) / width);
  return (
    (question ? 62 + 23 * lines(question.content, 70) : 0) + (shown ? 80 + 26 * lines(shown.content, 92) : 0)
  );
}

// Loaded with the first chart: uPlot and its style are no part of what every page needs.
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import './plot.css';
import { type Range, timeIn } from './range';

export interface Series {
  /** The custom property with its color. */
  color: string;
  values: (number | null)[];
  /** Bars show figures that stand alone, too. */
  look: 'area' | 'line' | 'dashed' | 'stepped' | 'bars';
}

export interface PlotOptions {
  range: Range;
  /** Where it ends, in seconds since 1970. */
  to: number;
  height: number;
  series: Series[];
  /** Formats a value beside its line. */
  format: (value: number) => string;
  /** Multiples of 1024 beside the lines, as memory has. */
  binary?: boolean;
  /** The values that have lines, and the greatest; by default, what suits the data. */
  ticks?: number[];
  /** Called with the row that the pointer is at; `null` once it has left. */
  onpoint: (row: number | null) => void;
}

const POWERS_OF_TWO = Array.from({ length: 50 }, (_, power) => 2 ** power);
/** Space for `16.5 GB`. */
const LABELS = 56;

/** Draws a chart into an element. */
export class Plot {
  #plot: uPlot;
  #options: PlotOptions;

  constructor(into: HTMLElement, width: number, options: PlotOptions) {
    this.#options = options;
    const style = getComputedStyle(into);
    const color = (token: string) => style.getPropertyValue(token).trim();
    const { height, series, ticks, binary } = options;
    const quiet = {
      stroke: () => color('--text-3'),
      grid: { stroke: () => color('--line'), width: 1 },
      ticks: { show: false },
      font: `11px ${style.fontFamily}`,
    };
    this.#plot = new uPlot(
      {
        width,
        height,
        padding: [6, 28, 0, 0],
        legend: { show: false },
        cursor: { y: false, drag: { x: false, y: false }, points: { size: 6 } },
        select: { show: false, left: 0, top: 0, width: 0, height: 0 },
        scales: {
          // Of a single reading, uPlot's own end is a day later.
          x: { range: () => [this.#options.to - this.#options.range.minutes * 60, this.#options.to] },
          y: { range: (_, __, max) => [0, ticks?.at(-1) ?? Math.max(max * 1.08, 1)] },
        },
        axes: [
          {
            ...quiet,
            size: 24,
            space: 90,
            values: (_, at) => at.map((second) => timeIn(this.#options.range, second)),
          },
          {
            ...quiet,
            size: LABELS,
            space: 30,
            ...(binary ? { incrs: POWERS_OF_TWO } : {}),
            ...(ticks ? { splits: () => ticks } : {}),
            values: (_, values) => values.map((value) => this.#options.format(value)),
          },
        ],
        series: [
          {},
          ...series.map(({ color: token, look }) => ({
            stroke: () => color(look === 'dashed' ? '--text-2' : token),
            width: look === 'area' ? 1 : 1.5,
            ...(look === 'area' ? { fill: () => color(token) } : {}),
            // The tokens that lines have are opaque.
            ...(look === 'line' || look === 'stepped' ? { fill: () => `${color(token)}26` } : {}),
            ...(look === 'dashed' ? { dash: [5, 4] } : {}),
            ...(look === 'stepped' ? { paths: uPlot.paths.stepped?.({ align: 1 }) } : {}),
            ...(look === 'bars'
              ? { paths: uPlot.paths.bars?.({ size: [1, 100, 2] }), fill: () => color(token) }
              : {}),
            // A single reading has no line.
            points: {
              show: look !== 'bars' && ((_: uPlot, __: number, from: number, to: number) => from === to),
            },
          })),
        ],
        hooks: { setCursor: [({ cursor }) => options.onpoint(cursor.idx ?? null)] },
      },
      undefined,
      into,
    );
  }

  update(at: number[], options: Pick<PlotOptions, 'series' | 'range' | 'to'>): void {
    Object.assign(this.#options, options);
    this.#plot.setData([at, ...options.series.map(({ values }) => values)]);
  }

  resize(width: number): void {
    if (width !== this.#plot.width) this.#plot.setSize({ width, height: this.#options.height });
  }

  /** Draws in the colors of now. Bars keep theirs in their paths. */
  recolor(): void {
    this.#plot.redraw();
  }

  /** Shows the cursor at a time, or hides it. */
  point(at: number | null): void {
    const left = at === null ? -10 : this.#plot.valToPos(at, 'x');
    this.#plot.setCursor({ left, top: at === null ? -10 : 0 }, false);
  }

  destroy(): void {
    this.#plot.destroy();
  }
}

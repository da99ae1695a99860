import type { Point, Spread, Status } from '../../platform/openapi';
import { usedRam } from '../monitor/memory';

/** One moment; `null` is unknown. */
export interface Moment {
  /** Seconds since 1970. */
  at: number;
  ram: number | null;
  swap: number | null;
  /** Tokens per second while a model answers. */
  speed: number | null;
}

/** The figures of a sparkline. */
export type Figure = Exclude<keyof Moment, 'at'>;

export const SECONDS = 600;

export function ofHistory(points: (Point & { decode_tokens_per_second?: Spread | null })[]): Moment[] {
  return points.map((point) => ({
    at: point.at,
    ram: point.ram_used_bytes?.mean ?? null,
    swap: point.swap_used_bytes?.mean ?? null,
    speed: point.decode_tokens_per_second?.mean ?? null,
  }));
}

export function ofStatus({ ram, swap, speed, tiers }: Status, at: number): Moment {
  const answering = tiers.some(({ state }) => state === 'busy');
  return {
    at,
    ram: usedRam(ram),
    swap: swap.used_bytes,
    speed: answering ? speed.decode_tokens_per_second : null,
  };
}

/** Adds a moment, and drops those older than ten minutes. */
export function withMoment(moments: Moment[], next: Moment): Moment[] {
  const kept = moments.filter(({ at }) => at > next.at - SECONDS && at < next.at);
  return [...kept, next];
}

/**
 * Returns the lines of a figure over the last ten minutes in a box of this size, as the points of SVG polylines. An unknown figure
 * makes a gap.
 */
export function sparkline(
  moments: Moment[],
  figure: Figure,
  top: number,
  width: number,
  height: number,
): string[] {
  const end = moments.at(-1)?.at ?? 0;
  const lines: string[][] = [[]];
  for (const moment of moments) {
    const value = moment[figure];
    if (value === null) {
      lines.push([]);
      continue;
    }
    const x = width - ((end - moment.at) / SECONDS) * width;
    const y = height - (top > 0 ? Math.min(value / top, 1) : 0) * height;
    lines.at(-1)?.push(`${x.toFixed(1)},${y.toFixed(1)}`);
  }
  return lines.filter((line) => line.length > 0).map((line) => line.join(' '));
}

/** Returns the least and the greatest value of a figure; `null` where it is unknown throughout. */
export function extent(moments: Moment[], figure: Figure): { least: number; most: number } | null {
  const values = moments.flatMap((moment) => moment[figure] ?? []);
  return values.length === 0 ? null : { least: Math.min(...values), most: Math.max(...values) };
}

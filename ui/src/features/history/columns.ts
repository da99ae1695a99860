import type { History, Point, Pressure } from '../../platform/openapi';

type Figures = (number | null)[];

/** The history in columns, a row for each point, and an empty row where readings are missing. */
export interface Columns {
  /** Seconds since 1970, ascending. */
  at: number[];
  models: Figures;
  /** RAM in use, models included. */
  used: Figures;
  total: Figures;
  swap: Figures;
  /** Change of swap per minute. */
  growth: Figures;
  /** 0, 1 or 2: the worst of each point. */
  pressure: Figures;
  decode: Figures;
  reads: Figures;
}

export const PRESSURES: Pressure[] = ['normal', 'warning', 'critical'];

/** Without a watcher and a loaded model, readings are taken every five seconds. */
const SLOWEST_READINGS = 5;

/** The longest time from one point to the next that is no gap. */
function longestStep(stepSeconds: number): number {
  return Math.max(2 * stepSeconds, 3 * SLOWEST_READINGS);
}

export function columns({ step_seconds: step, points }: History): Columns {
  const found: Columns = {
    at: [],
    models: [],
    used: [],
    total: [],
    swap: [],
    growth: [],
    pressure: [],
    decode: [],
    reads: [],
  };
  points.forEach((point, index) => {
    const before = points[index - 1];
    if (before && point.at - before.at > longestStep(step)) row(found, before.at + step);
    row(found, point.at, point, growthAt(points, index, step));
  });
  return found;
}

function row(to: Columns, at: number, point?: Point, growth: number | null = null): void {
  to.at.push(at);
  to.models.push(point?.models_bytes?.mean ?? null);
  to.used.push(point?.ram_used_bytes?.mean ?? null);
  to.total.push(point?.ram_total_bytes ?? null);
  to.swap.push(point?.swap_used_bytes?.mean ?? null);
  to.growth.push(growth);
  to.pressure.push(point?.pressure ? PRESSURES.indexOf(point.pressure) : null);
  to.decode.push(point?.decode_tokens_per_second?.mean ?? null);
  to.reads.push(point?.disk_read_bytes_per_second?.mean ?? null);
}

/** How much swap grew per minute up to a point, from the last one that is at least a minute older. */
function growthAt(points: Point[], index: number, step: number): number | null {
  const now = points[index];
  const used = now?.swap_used_bytes?.mean;
  if (now === undefined || used === undefined) return null;
  for (let at = index - 1; at >= 0; at -= 1) {
    const before = points[at];
    if (before === undefined) return null;
    const seconds = now.at - before.at;
    if (seconds < 60) continue;
    const was = before.swap_used_bytes?.mean;
    if (was === undefined || seconds > 60 + longestStep(step)) return null;
    return ((used - was) / seconds) * 60;
  }
  return null;
}

/** Returns the greatest figure; `null` if there is none. */
export function most(figures: Figures): number | null {
  return figures.reduce(
    (found, figure) => (figure === null || (found !== null && found >= figure) ? found : figure),
    null,
  );
}

/** Returns the models' greatest share of memory as its points had it at most, not in the mean. */
export function peak(
  { points }: History,
  of: (point: Point) => { max: number } | null | undefined,
): number | null {
  return most(points.map((point) => of(point)?.max ?? null));
}

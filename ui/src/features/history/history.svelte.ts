import { type Api, type ApiError, asApiError } from '../../lib/http';
import type { History } from '../../platform/openapi';
import { RANGES, type Range } from './range';

/** The readings of the chosen span, as last read. */
export class Readings {
  range = $state.raw<Range>(RANGES[0]);
  history = $state.raw<History | null>(null);
  problem = $state.raw<ApiError | null>(null);
  #api: Api;

  constructor(api: Api) {
    this.#api = api;
  }

  /** Chooses a span, to be loaded. */
  choose(range: Range): void {
    if (range === this.range) return;
    this.range = range;
    this.history = null;
  }

  /** Reads what is new since the last time, or all of the span. */
  async load(): Promise<void> {
    const range = this.range;
    const last = this.history?.points.at(-1)?.at;
    try {
      // The last point may have been unfinished.
      const read = await this.#api.get('/tierbar/v1/history', {
        query: { minutes: range.minutes, since: last },
      });
      if (range !== this.range) return;
      this.history = merge(this.history, read, range);
      this.problem = null;
    } catch (cause) {
      if (range === this.range) this.problem = asApiError(cause);
    }
  }
}

/** Appends what was read to what is known, and drops what is older than the span. */
function merge(known: History | null, read: History, range: Range): History {
  const first = read.points[0]?.at ?? Number.POSITIVE_INFINITY;
  const kept = known?.step_seconds === read.step_seconds ? known.points.filter(({ at }) => at < first) : [];
  const points = [...kept, ...read.points];
  const oldest = (points.at(-1)?.at ?? 0) - range.minutes * 60;
  return { step_seconds: read.step_seconds, points: points.filter(({ at }) => at >= oldest) };
}

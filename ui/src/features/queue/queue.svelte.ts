import { type Api, type ApiError, asApiError } from '../../lib/http';
import type { JobState, JobStatus } from '../../platform/api';

/** Those that the user may have to know of, in the order in which they are shown, and at most so many of each. */
const SHOWN = [
  ['running', 10],
  ['waiting', 25],
  ['failed', 10],
  ['expired', 5],
] as const satisfies readonly (readonly [JobState, number])[];

type Counts = Partial<Record<JobState, number>>;

/** The queued requests, as far as they are shown. */
export class Queue {
  counts = $state.raw<Counts>({});
  /** The newest of each state first. */
  jobs = $state.raw<JobStatus[]>([]);
  /** As many are in these states and not shown. */
  more = $derived(SHOWN.reduce((sum, [state]) => sum + this.count(state), 0) - this.jobs.length);
  problem = $state.raw<ApiError | null>(null);
  /** Why the last one was not removed. */
  refused = $state.raw<ApiError | null>(null);
  #api: Api;
  /** Answers to questions that were asked before the last `load` come too late. */
  #asked = 0;

  constructor(api: Api) {
    this.#api = api;
  }

  count(state: JobState): number {
    return this.counts[state] ?? 0;
  }

  async load(): Promise<void> {
    const asked = ++this.#asked;
    try {
      let counts: Counts = {};
      const jobs: JobStatus[] = [];
      for (const [state, limit] of SHOWN) {
        // The first answer tells which of the others there are.
        if (state !== SHOWN[0][0] && !counts[state]) continue;
        const page = await this.#api.get<{ counts: Counts; jobs: JobStatus[] }>(
          `/tierbar/v1/queue?state=${state}&limit=${limit}`,
        );
        counts = page.counts;
        // One that changed meanwhile is in two answers.
        const newer = new Set(page.jobs.map(({ id }) => id));
        jobs.splice(0, jobs.length, ...jobs.filter(({ id }) => !newer.has(id)), ...page.jobs);
      }
      if (asked !== this.#asked) return;
      this.counts = counts;
      this.jobs = jobs;
      this.problem = null;
    } catch (cause) {
      if (asked === this.#asked) this.problem = asApiError(cause);
    }
  }

  /** Calls off one that has not ended as far as is known here; one that has is forgotten. */
  async remove({ id, state }: Pick<JobStatus, 'id' | 'state'>): Promise<void> {
    this.refused = null;
    const keep = state === 'running' || state === 'waiting' ? '?keep=ended' : '';
    try {
      await this.#api.delete(`/v1/queue/${encodeURIComponent(id)}${keep}`);
    } catch (cause) {
      this.refused = asApiError(cause);
    }
    await this.load();
  }
}

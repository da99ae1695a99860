import { type Api, type ApiError, asApiError } from '../../lib/http';
import type { JobState, JobStatus } from '../../platform/openapi';

/** The states that are shown, in this order, and at most how many requests of each. */
const SHOWN = [
  ['running', 10],
  ['waiting', 25],
  ['failed', 10],
  ['expired', 5],
] as const satisfies readonly (readonly [JobState, number])[];

type Counts = Partial<Record<JobState, number>>;

/** The part of the queue that is shown. */
export class Queue {
  counts = $state.raw<Counts>({});
  /** The newest of each state first. */
  jobs = $state.raw<JobStatus[]>([]);
  /** How many more are in these states. */
  more = $derived(SHOWN.reduce((sum, [state]) => sum + this.count(state), 0) - this.jobs.length);
  problem = $state.raw<ApiError | null>(null);
  /** Why the last request was not removed. */
  removeError = $state.raw<ApiError | null>(null);
  #api: Api;
  /** Counts loads: the answer to an older one is ignored. */
  #requests = 0;

  constructor(api: Api) {
    this.#api = api;
  }

  count(state: JobState): number {
    return this.counts[state] ?? 0;
  }

  async load(): Promise<void> {
    const request = ++this.#requests;
    try {
      let counts: Counts = {};
      const jobs: JobStatus[] = [];
      for (const [state, limit] of SHOWN) {
        // The first answer has the counts of all states.
        if (state !== SHOWN[0][0] && !counts[state]) continue;
        const page = await this.#api.get('/tierbar/v1/queue', { query: { state, limit } });
        counts = page.counts;
        // A request that changed state meanwhile is in two answers.
        const newer = new Set(page.jobs.map(({ id }) => id));
        jobs.splice(0, jobs.length, ...jobs.filter(({ id }) => !newer.has(id)), ...page.jobs);
      }
      if (request !== this.#requests) return;
      this.counts = counts;
      this.jobs = jobs;
      this.problem = null;
    } catch (cause) {
      if (request === this.#requests) this.problem = asApiError(cause);
    }
  }

  /** Cancels a request that has not ended as far as this page knows; removes one that has. */
  async remove({ id, state }: Pick<JobStatus, 'id' | 'state'>): Promise<void> {
    this.removeError = null;
    const query = state === 'running' || state === 'waiting' ? { keep: 'ended' as const } : {};
    try {
      await this.#api.delete('/v1/queue/{id}', { path: { id }, query });
    } catch (cause) {
      this.removeError = asApiError(cause);
    }
    await this.load();
  }
}

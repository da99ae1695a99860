import { type Api, type ApiError, asApiError } from '../../lib/http';
import type { Entry } from '../../platform/openapi';

/** Entries per request, and how many requests at most: more than a month of ordinary use. */
const PAGE = 1000;
const PAGES = 5;

/** The events of the tiers since a time, oldest first, as last read. */
export class TierEvents {
  entries = $state.raw<Entry[]>([]);
  problem = $state.raw<ApiError | null>(null);
  #api: Api;
  /** Seconds since 1970 that all events are known from. */
  #since = Number.POSITIVE_INFINITY;

  constructor(api: Api) {
    this.#api = api;
  }

  /** Reads what is new, and what is older if `since`, in seconds since 1970, is. */
  async load(since: number): Promise<void> {
    const known = since >= this.#since ? (this.entries.at(-1)?.id ?? 0) : 0;
    const found: Entry[] = [];
    try {
      for (let page = 0; page < PAGES; page += 1) {
        const query = { limit: page === 0 && known > 0 ? 50 : PAGE, before: found.at(-1)?.id };
        const { entries } = await this.#api.get('/tierbar/v1/log', { query });
        found.push(...entries.filter(({ id }) => id > known));
        const last = entries.at(-1);
        if (entries.length < query.limit || !last || last.id <= known || last.at_ms / 1000 < since) break;
      }
      const fresh = found.reverse();
      if (known === 0) this.entries = fresh;
      else if (fresh.length > 0) this.entries = [...this.entries, ...fresh];
      this.#since = Math.min(this.#since, since);
      this.problem = null;
    } catch (cause) {
      this.problem = asApiError(cause);
    }
  }
}

import { type Api, type ApiError, asApiError } from '../../lib/http';
import type { RequestRecord } from '../../platform/openapi';

/** As many as the host keeps. */
const KEPT = 500;

/** The last requests that have ended, newest first, as last read. */
export class Requests {
  list = $state.raw<RequestRecord[] | null>(null);
  problem = $state.raw<ApiError | null>(null);
  #api: Api;

  constructor(api: Api) {
    this.#api = api;
  }

  /** Forgets the list: another host counts anew. */
  reset(): void {
    this.list = null;
  }

  async load(): Promise<void> {
    try {
      const before = this.list;
      const query = { limit: KEPT, after: before?.[0]?.id };
      const { requests } = await this.#api.get('/tierbar/v1/requests', { query });
      // Another read was faster.
      if (this.list !== before) return;
      // A list that has not changed is not drawn again.
      if (this.list === null || requests.length > 0)
        this.list = [...requests, ...(this.list ?? [])].slice(0, KEPT);
      this.problem = null;
    } catch (cause) {
      this.problem = asApiError(cause);
    }
  }
}

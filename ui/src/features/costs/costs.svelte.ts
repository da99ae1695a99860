import { type Api, type ApiError, asApiError } from '../../lib/http';
import type { Costs } from '../../platform/openapi';

export const DAYS = 30;

/** What tasks used and saved, as last read. */
export class TaskCosts {
  costs = $state.raw<Costs | null>(null);
  problem = $state.raw<ApiError | null>(null);
  #api: Api;

  constructor(api: Api) {
    this.#api = api;
  }

  async load(): Promise<void> {
    try {
      this.costs = await this.#api.get('/tierbar/v1/costs', { query: { days: DAYS } });
      this.problem = null;
    } catch (cause) {
      this.problem = asApiError(cause);
    }
  }
}

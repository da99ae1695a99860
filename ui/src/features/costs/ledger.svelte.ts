import { type Api, type ApiError, asApiError } from '../../lib/http';
import type { LedgerReport } from '../../platform/openapi';

/** What requests took, as last read. */
export class Ledger {
  report = $state.raw<LedgerReport | null>(null);
  problem = $state.raw<ApiError | null>(null);
  days = $state(30);
  #api: Api;

  constructor(api: Api) {
    this.#api = api;
  }

  async load(): Promise<void> {
    const { days } = this;
    try {
      const report = await this.#api.get('/tierbar/v1/ledger', { query: { days } });
      // Another number of days may have been chosen meanwhile.
      if (days === this.days) this.report = report;
      this.problem = null;
    } catch (cause) {
      this.problem = asApiError(cause);
    }
  }
}

import { type Api, type ApiError, asApiError } from '../../lib/http';

/** Loads and unloads tiers and keeps the host's errors. The tiers' states come from the feed. */
export class TierControl {
  /** Calls in progress, by tier. */
  pending = $state<Record<string, 'start' | 'stop' | 'force' | undefined>>({});
  errors = $state<Record<string, ApiError | undefined>>({});
  #api: Api;

  constructor(api: Api) {
    this.#api = api;
  }

  start(id: string): Promise<void> {
    return this.#call(id, 'start', () => this.#api.post('/tierbar/v1/tiers/{id}/start', { path: { id } }));
  }

  /** Waits for current answers; `force` interrupts them. */
  stop(id: string, force: boolean): Promise<void> {
    return this.#call(id, force ? 'force' : 'stop', () =>
      this.#api.post('/tierbar/v1/tiers/{id}/stop', { path: { id }, body: { force } }),
    );
  }

  async #call(id: string, pending: 'start' | 'stop' | 'force', call: () => Promise<unknown>): Promise<void> {
    this.pending[id] = pending;
    this.errors[id] = undefined;
    try {
      await call();
    } catch (cause) {
      this.errors[id] = asApiError(cause);
    } finally {
      this.pending[id] = undefined;
    }
  }
}

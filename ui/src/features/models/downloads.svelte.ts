import { type Api, type ApiError, asApiError } from '../../lib/http';
import type { Include, Priority } from '../../platform/openapi';

/** Starts and controls downloads and keeps the host's errors. Their states come from the feed. */
export class Downloads {
  /** References whose download is being started. */
  starting = $state<Record<string, boolean | undefined>>({});
  /** Why a download was refused, by reference. */
  refusals = $state<Record<string, ApiError | undefined>>({});
  /** Why the last change of a download failed, by its id. */
  errors = $state<Record<string, ApiError | undefined>>({});
  #api: Api;

  constructor(api: Api) {
    this.#api = api;
  }

  /**
   * `anyway`: even if the model is too large. `include`: which files; by default the model with its projector. Resolves to
   * whether the download started.
   */
  async get(reference: string, anyway = false, include: Include = 'all'): Promise<boolean> {
    this.starting[reference] = true;
    this.refusals[reference] = undefined;
    try {
      await this.#api.post('/tierbar/v1/downloads', {
        body: { reference, ...(anyway && { anyway }), ...(include !== 'all' && { include }) },
      });
      return true;
    } catch (cause) {
      this.refusals[reference] = asApiError(cause);
      return false;
    } finally {
      this.starting[reference] = undefined;
    }
  }

  pause(id: string): Promise<void> {
    return this.#change(id, { state: 'paused' });
  }

  /** Continues a paused download, or retries a failed one. */
  resume(id: string): Promise<void> {
    return this.#change(id, { state: 'queued' });
  }

  prioritise(id: string, priority: Priority): Promise<void> {
    return this.#change(id, { priority });
  }

  /** Deletes a partial download; a finished one is only removed from the list. */
  remove(id: string): Promise<void> {
    return this.#do(id, () => this.#api.delete('/tierbar/v1/downloads/{id}', { path: { id } }));
  }

  #change(id: string, body: { state: 'paused' | 'queued' } | { priority: Priority }): Promise<void> {
    return this.#do(id, () => this.#api.patch('/tierbar/v1/downloads/{id}', { path: { id }, body }));
  }

  async #do(id: string, call: () => Promise<unknown>): Promise<void> {
    this.errors[id] = undefined;
    try {
      await call();
    } catch (cause) {
      this.errors[id] = asApiError(cause);
    }
  }
}

import { type Api, type ApiError, asApiError } from '../../lib/http';
import type { DownloadStatus, Priority } from '../../platform/api';

/** Starts and steers downloads, and keeps what the host said against it. Their state itself comes from the feed. */
export class Downloads {
  /** References that are being asked for. */
  asking = $state<Record<string, boolean | undefined>>({});
  /** Why a reference is not fetched. */
  refusals = $state<Record<string, ApiError | undefined>>({});
  /** What the host said against the last change of a download, by its id. */
  errors = $state<Record<string, ApiError | undefined>>({});
  #api: Api;

  constructor(api: Api) {
    this.#api = api;
  }

  /** `anyway`: also what cannot run here. Resolves to whether it is under way. */
  async get(reference: string, anyway = false): Promise<boolean> {
    this.asking[reference] = true;
    this.refusals[reference] = undefined;
    try {
      await this.#api.post<DownloadStatus>(
        '/tierbar/v1/downloads',
        anyway ? { reference, anyway } : { reference },
      );
      return true;
    } catch (cause) {
      this.refusals[reference] = asApiError(cause);
      return false;
    } finally {
      this.asking[reference] = undefined;
    }
  }

  pause(id: string): Promise<void> {
    return this.#change(id, () => this.#api.patch(at(id), { state: 'paused' }));
  }

  /** Goes on with a paused one, and tries a failed one again. */
  resume(id: string): Promise<void> {
    return this.#change(id, () => this.#api.patch(at(id), { state: 'queued' }));
  }

  prioritise(id: string, priority: Priority): Promise<void> {
    return this.#change(id, () => this.#api.patch(at(id), { priority }));
  }

  /** Deletes what has arrived; a finished one only leaves the list. */
  remove(id: string): Promise<void> {
    return this.#change(id, () => this.#api.delete(at(id)));
  }

  async #change(id: string, change: () => Promise<unknown>): Promise<void> {
    this.errors[id] = undefined;
    try {
      await change();
    } catch (cause) {
      this.errors[id] = asApiError(cause);
    }
  }
}

function at(id: string): string {
  return `/tierbar/v1/downloads/${encodeURIComponent(id)}`;
}

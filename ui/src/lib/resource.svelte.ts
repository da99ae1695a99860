import { type ApiError, asApiError } from './http';

/** Something of the API as last read. */
export class Resource<T> {
  /** `null` until the first read; kept when a later one fails. */
  value = $state.raw<T | null>(null);
  /** Why the last read failed. */
  problem = $state.raw<ApiError | null>(null);
  #read: () => Promise<T>;

  constructor(read: () => Promise<T>) {
    this.#read = read;
  }

  async load(): Promise<void> {
    try {
      this.value = await this.#read();
      this.problem = null;
    } catch (cause) {
      this.problem = asApiError(cause);
    }
  }
}

import { type Api, type ApiError, asApiError } from '../../lib/http';
import type { SecretPlace, SecretSource } from '../../platform/openapi';

/** Owns what this page knows of tokens and keys for other services: where they are, not what they are. */
export class Secrets {
  #places = $state.raw<SecretPlace[] | null>(null);
  /** Why they cannot be read. */
  problem = $state.raw<ApiError | null>(null);
  #api: Api;

  constructor(api: Api) {
    this.#api = api;
  }

  async load(): Promise<void> {
    try {
      this.#places = (await this.#api.get('/tierbar/v1/secrets')).secrets;
      this.problem = null;
    } catch (cause) {
      this.problem = asApiError(cause);
    }
  }

  /** Where a secret is; `null` if nowhere, `undefined` while that is not known. */
  source(name: string): SecretSource | null | undefined {
    if (this.#places === null) return undefined;
    return this.#places.find((place) => place.name === name)?.source ?? null;
  }
}

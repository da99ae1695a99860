import { type Api, type ApiError, asApiError } from '../../lib/http';
import type { ChainStatus } from '../../platform/openapi';

/** The chains as last read. */
export class Chains {
  /** `null` until the first read. */
  list = $state.raw<ChainStatus[] | null>(null);
  /** When the chains were read, in milliseconds since 1970: their remaining times count from then. */
  readAt = $state(0);
  problem = $state.raw<ApiError | null>(null);
  #api: Api;

  constructor(api: Api) {
    this.#api = api;
  }

  named(name: string): ChainStatus | undefined {
    return this.list?.find((chain) => chain.name === name);
  }

  async load(): Promise<void> {
    try {
      const { chains } = await this.#api.get('/tierbar/v1/chains');
      this.list = chains;
      this.readAt = Date.now();
      this.problem = null;
    } catch (cause) {
      this.problem = asApiError(cause);
    }
  }
}

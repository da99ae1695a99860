import { type Api, type ApiError, asApiError } from '../../lib/http';
import type { ChainStatus } from '../../platform/api';

/** The chains, as they were when they were last read. */
export class Chains {
  /** `null` until they were read. */
  list = $state.raw<ChainStatus[] | null>(null);
  /** When that was, in milliseconds since 1970: what they tell of the time counts from there. */
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
      const { chains } = await this.#api.get<{ chains: ChainStatus[] }>('/tierbar/v1/chains');
      this.list = chains;
      this.readAt = Date.now();
      this.problem = null;
    } catch (cause) {
      this.problem = asApiError(cause);
    }
  }
}

import { type Api, type ApiError, asApiError } from '../../lib/http';
import type { DiskTraffic, TierPaging } from '../../platform/openapi';

/** The experts of the loaded models, and the disk, as last read. */
export class Paging {
  tiers = $state.raw<TierPaging[]>([]);
  disk = $state.raw<DiskTraffic | null>(null);
  problem = $state.raw<ApiError | null>(null);
  #api: Api;

  constructor(api: Api) {
    this.#api = api;
  }

  async load(): Promise<void> {
    try {
      const { tiers, disk } = await this.#api.get('/tierbar/v1/paging');
      this.tiers = tiers;
      this.disk = disk;
      this.problem = null;
    } catch (cause) {
      this.problem = asApiError(cause);
    }
  }
}

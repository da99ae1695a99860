import { type Api, type ApiError, asApiError } from '../../lib/http';
import type { CatalogModel } from '../../platform/openapi';

/** Owns the catalog as this page sees it. It comes with Tierbar, so it is there offline too. */
export class Catalog {
  models = $state.raw<CatalogModel[] | null>(null);
  problem = $state.raw<ApiError | null>(null);
  #api: Api;

  constructor(api: Api) {
    this.#api = api;
  }

  async load(): Promise<void> {
    try {
      this.models = (await this.#api.get('/tierbar/v1/catalog')).models;
      this.problem = null;
    } catch (cause) {
      this.problem = asApiError(cause);
    }
  }
}

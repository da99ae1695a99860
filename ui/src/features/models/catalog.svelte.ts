import { type Api, type ApiError, asApiError } from '../../lib/http';
import type { CatalogModel, CatalogRefresh } from '../../platform/openapi';

/** Owns the catalog as this page sees it. It comes with Tierbar, so it is there offline too. */
export class Catalog {
  models = $state.raw<CatalogModel[] | null>(null);
  /** When its facts were collected, as an ISO date. */
  date = $state<string | null>(null);
  /** When its files were last updated from the hub, as an ISO time. */
  refreshed = $state<string | null>(null);
  problem = $state.raw<ApiError | null>(null);
  refreshing = $state(false);
  /** Of the last update in this window. */
  outcome = $state.raw<CatalogRefresh | ApiError | null>(null);
  #api: Api;

  constructor(api: Api) {
    this.#api = api;
  }

  async load(): Promise<void> {
    try {
      const { models, date, refreshed } = await this.#api.get('/tierbar/v1/catalog');
      this.models = models;
      this.date = date;
      this.refreshed = refreshed;
      this.problem = null;
    } catch (cause) {
      this.problem = asApiError(cause);
    }
  }

  /** Asks the hub for the current files of all models. */
  async refresh(): Promise<void> {
    this.refreshing = true;
    try {
      this.outcome = await this.#api.post('/tierbar/v1/catalog/refresh');
      await this.load();
    } catch (cause) {
      this.outcome = asApiError(cause);
    } finally {
      this.refreshing = false;
    }
  }
}

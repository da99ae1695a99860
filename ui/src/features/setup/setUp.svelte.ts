import { type Api, type ApiError, asApiError } from '../../lib/http';
import type { SetupPlan, TierConfig, TierPlan } from '../../platform/openapi';

/** What the plan was made for, without what was set for another model. */
const FRESH: Partial<TierConfig> = {
  context: 'auto',
  kv_cache: 'auto',
  gpu_layers: null,
  experts_used: null,
  draft_model: '',
};

/** Owns the plan of a set-up as this page sees it, and carries it out. The host goes on without this page. */
export class SetUp {
  plan = $state.raw<SetupPlan | null>(null);
  problem = $state.raw<ApiError | null>(null);
  /** While models are being assigned and their downloads started. */
  starting = $state(false);
  #api: Api;

  constructor(api: Api) {
    this.#api = api;
  }

  async load(): Promise<void> {
    try {
      this.plan = await this.#api.get('/tierbar/v1/setup');
    } catch (cause) {
      this.problem = asApiError(cause);
    }
  }

  /** Assigns what is installed, and downloads the rest in order of use. */
  async start(tiers: TierPlan[]): Promise<void> {
    this.starting = true;
    this.problem = null;
    try {
      for (const { tier, installed, reference } of tiers) {
        if (installed === null) {
          await this.#api.post('/tierbar/v1/downloads', { body: { reference, tier } });
        } else {
          await this.#api.patch('/tierbar/v1/config', {
            body: { tiers: { [tier]: { ...FRESH, model: installed } } },
          });
        }
      }
      this.plan = await this.#api.get('/tierbar/v1/setup');
    } catch (cause) {
      this.problem = asApiError(cause);
    } finally {
      this.starting = false;
    }
  }
}

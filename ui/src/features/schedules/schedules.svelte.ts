import { type Api, type ApiError, asApiError } from '../../lib/http';
import type { ScheduleStatus } from '../../platform/openapi';

/** The schedules as the host runs them, as last read. */
export class Schedules {
  list = $state.raw<ScheduleStatus[]>([]);
  problem = $state.raw<ApiError | null>(null);
  /** Why the last run that was started here failed, by name. */
  failures = $state<Record<string, ApiError | undefined>>({});
  running = $state<Record<string, boolean | undefined>>({});
  #api: Api;

  constructor(api: Api) {
    this.#api = api;
  }

  async load(): Promise<void> {
    try {
      this.list = (await this.#api.get('/tierbar/v1/schedules')).schedules;
      this.problem = null;
    } catch (cause) {
      this.problem = asApiError(cause);
    }
  }

  /** Runs a schedule now, in addition to its regular runs. Resolves when it has run. */
  async run(name: string): Promise<void> {
    if (this.running[name]) return;
    this.running[name] = true;
    this.failures[name] = undefined;
    try {
      await this.#api.post('/tierbar/v1/schedules/{name}/run', { path: { name } });
    } catch (cause) {
      this.failures[name] = asApiError(cause);
    } finally {
      this.running[name] = false;
    }
    await this.load();
  }
}

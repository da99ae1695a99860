import { type Api, type ApiError, asApiError } from '../../lib/http';
import type { GradeReport } from '../../platform/openapi';

/** The rates of graded answers, as last read. */
export class Grades {
  report = $state.raw<GradeReport | null>(null);
  problem = $state.raw<ApiError | null>(null);
  #api: Api;

  constructor(api: Api) {
    this.#api = api;
  }

  async load(): Promise<void> {
    await this.#do(async () => {
      this.report = await this.#api.get('/tierbar/v1/grades');
    });
  }

  /** Has `auto` learn from none of the grades so far. */
  async reset(): Promise<void> {
    await this.#do(async () => {
      await this.#api.post('/tierbar/v1/grades/reset');
      this.report = await this.#api.get('/tierbar/v1/grades');
    });
  }

  /** The graded answers as JSON Lines; `null` if that failed. */
  async export(): Promise<Blob | null> {
    let file: Blob | null = null;
    await this.#do(async () => {
      file = await this.#api.download('/tierbar/v1/grades/export', { query: { form: 'all' } });
    });
    return file;
  }

  async #do(call: () => Promise<void>): Promise<void> {
    try {
      await call();
      this.problem = null;
    } catch (cause) {
      this.problem = asApiError(cause);
    }
  }
}

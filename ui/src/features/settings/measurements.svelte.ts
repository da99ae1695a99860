import { type Api, type ApiError, asApiError, ConnectionError, errorFromBody } from '../../lib/http';
import { readSse } from '../../lib/sse';
import type { BenchReport, Mark, Progress, TuneReport } from '../../platform/openapi';

/** `paging` is a bench of each way to run a model that is larger than memory; `agent` is how its model acts. */
export type Kind = 'bench' | 'tune' | 'paging' | 'agent';

export interface Running {
  tier: string;
  kind: Kind;
  /** `null` until the host reports progress. */
  progress: Progress | null;
}

/** Owns the results of all tiers' measurements, and the one that is running: the host runs one at a time. */
export class Measurements {
  bench = $state<Record<string, BenchReport | null>>({});
  tune = $state<Record<string, TuneReport | null>>({});
  agent = $state<Record<string, Mark | null>>({});
  running = $state.raw<Running | null>(null);
  errors = $state<Record<string, ApiError | undefined>>({});
  #api: Api;
  #abort: AbortController | null = null;

  constructor(api: Api) {
    this.#api = api;
  }

  /** Reads the results of the tier's last measurements. */
  async load(tier: string): Promise<void> {
    try {
      const [bench, tune] = await Promise.all([
        this.#api.get('/tierbar/v1/tiers/{id}/bench', { path: { id: tier } }),
        this.#api.get('/tierbar/v1/tiers/{id}/tune', { path: { id: tier } }),
      ]);
      this.bench[tier] = bench.report;
      this.tune[tier] = tune.report;
    } catch (cause) {
      this.errors[tier] = asApiError(cause);
    }
  }

  /** Reads how the tier's model was measured to act, thinking or not as the tier has it. Without an answer, that stays unknown. */
  async loadAgent(tier: string): Promise<void> {
    try {
      const [{ models }, { config }] = await Promise.all([
        this.#api.get('/tierbar/v1/models'),
        this.#api.get('/tierbar/v1/config'),
      ]);
      const model = models.find(({ tiers }) => tiers.includes(tier));
      if (!model) return;
      const thinks = Boolean(config?.tiers?.[tier]?.thinking && model.account?.thinking);
      this.agent[tier] = model.marks?.find(({ first_steps }) => first_steps?.thinking === thinks) ?? null;
    } catch {
      // Nothing depends on it.
    }
  }

  /** Measures until the report arrives or `cancel` is called. Does not change the configuration. */
  async start(tier: string, kind: Kind): Promise<void> {
    if (this.running !== null) return;
    const abort = new AbortController();
    this.#abort = abort;
    this.running = { tier, kind, progress: null };
    this.errors[tier] = undefined;
    try {
      const options = { path: { id: tier }, signal: abort.signal };
      const response = await this.#begin(kind, options);
      const report = await this.#follow(response, tier, kind);
      if (kind === 'tune') this.tune[tier] = report as TuneReport;
      else if (kind === 'agent') this.agent[tier] = report as Mark;
      else this.bench[tier] = report as BenchReport;
    } catch (cause) {
      if (!abort.signal.aborted) this.errors[tier] = asApiError(cause);
    } finally {
      this.#abort = null;
      this.running = null;
    }
  }

  /** Cancels the running measurement. The host then restores the tier's settings. */
  cancel(): void {
    this.#abort?.abort();
  }

  #begin(kind: Kind, options: { path: { id: string }; signal: AbortSignal }): Promise<Response> {
    if (kind === 'agent') return this.#api.stream('post', '/tierbar/v1/tiers/{id}/agent', options);
    if (kind === 'tune')
      return this.#api.stream('post', '/tierbar/v1/tiers/{id}/tune', { ...options, body: { dry_run: true } });
    const body = kind === 'paging' ? { paging: true } : {};
    return this.#api.stream('post', '/tierbar/v1/tiers/{id}/bench', { ...options, body });
  }

  async #follow(response: Response, tier: string, kind: Kind): Promise<unknown> {
    if (response.body !== null) {
      for await (const item of readSse(response.body)) {
        if ('comment' in item) continue;
        const data: unknown = JSON.parse(item.data);
        const error = errorFromBody(data);
        if (error !== null) throw error;
        if (item.event === 'progress') this.running = { tier, kind, progress: data as Progress };
        else if (item.event === 'report') return data;
      }
    }
    throw new ConnectionError(
      'The measurement was interrupted.',
      'Check that Tierbar is running, then try again.',
    );
  }
}

import { type Api, ApiError, asApiError, errorFromBody } from '../../lib/http';
import { readSse } from '../../lib/sse';
import type { BenchReport, Progress, TuneReport } from '../../platform/api';

export type Kind = 'bench' | 'tune';

export interface Running {
  tier: string;
  kind: Kind;
  /** `null` until the host has said something. */
  progress: Progress | null;
}

/** Owns what is known of the tiers' speed, and the measurement that runs: the host makes one at a time. */
export class Speeds {
  bench = $state<Record<string, BenchReport | null>>({});
  tune = $state<Record<string, TuneReport | null>>({});
  running = $state.raw<Running | null>(null);
  errors = $state<Record<string, ApiError | undefined>>({});
  #api: Api;
  #abort: AbortController | null = null;

  constructor(api: Api) {
    this.#api = api;
  }

  /** What the last measurements of the tier told. */
  async load(tier: string): Promise<void> {
    try {
      const [bench, tune] = await Promise.all([
        this.#api.get<{ report: BenchReport | null }>(path(tier, 'bench')),
        this.#api.get<{ report: TuneReport | null }>(path(tier, 'tune')),
      ]);
      this.bench[tier] = bench.report;
      this.tune[tier] = tune.report;
    } catch (cause) {
      this.errors[tier] = asApiError(cause);
    }
  }

  /** Measures until the report is there, or until it is called off. The configuration is left to whoever reads the report. */
  async start(tier: string, kind: Kind): Promise<void> {
    if (this.running !== null) return;
    const abort = new AbortController();
    this.#abort = abort;
    this.running = { tier, kind, progress: null };
    this.errors[tier] = undefined;
    try {
      const body = kind === 'tune' ? { dry_run: true } : {};
      const response = await this.#api.stream(path(tier, kind), { body, signal: abort.signal });
      const report = await this.#follow(response, tier, kind);
      if (kind === 'bench') this.bench[tier] = report as BenchReport;
      else this.tune[tier] = report as TuneReport;
    } catch (cause) {
      if (!abort.signal.aborted) this.errors[tier] = asApiError(cause);
    } finally {
      this.#abort = null;
      this.running = null;
    }
  }

  /** Calls off what runs. The host then gives the tier its own settings back. */
  cancel(): void {
    this.#abort?.abort();
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
    throw new ApiError(
      'unreachable',
      'The measurement broke off.',
      'Check that Tierbar is running, then try again.',
    );
  }
}

function path(tier: string, kind: Kind): string {
  return `/tierbar/v1/tiers/${encodeURIComponent(tier)}/${kind}`;
}

import { type Api, type ApiError, asApiError } from '../../lib/http';
import type { Entry, TierId } from '../../platform/api';

/** As many are asked for at once. */
export const PAGE = 50;
/** As many are kept here; the rest is what `tierbar log` is for. */
export const MOST = 1000;

/** The log of why, as far as it is shown: the newest first. */
export class Log {
  entries = $state.raw<Entry[] | null>(null);
  /** There are older ones. */
  more = $state(false);
  busy = $state(false);
  problem = $state<ApiError | null>(null);
  /** `null`: of all tiers. */
  tier = $state<TierId | null>(null);
  #api: Api;
  /** Answers to questions that were asked before the last `load` come too late. */
  #asked = 0;

  constructor(api: Api) {
    this.#api = api;
  }

  async show(tier: TierId | null): Promise<void> {
    this.tier = tier;
    await this.load();
  }

  /** Reads the newest again: some may have been missed. */
  async load(): Promise<void> {
    const asked = ++this.#asked;
    this.busy = true;
    try {
      const entries = await this.#page();
      if (asked !== this.#asked) return;
      // What was told live meanwhile is not in an answer that was made before.
      const newest = entries[0]?.id ?? 0;
      const since = (this.entries ?? []).filter(({ id, tier }) => id > newest && this.#shows(tier));
      this.entries = [...since, ...entries];
      this.more = entries.length === PAGE;
      this.problem = null;
    } catch (cause) {
      if (asked === this.#asked) this.problem = asApiError(cause);
    } finally {
      if (asked === this.#asked) this.busy = false;
    }
  }

  async older(): Promise<void> {
    const before = this.entries?.at(-1)?.id;
    if (before === undefined || this.busy) return;
    const asked = this.#asked;
    this.busy = true;
    try {
      const entries = await this.#page(before);
      if (asked !== this.#asked) return;
      this.entries = [...(this.entries ?? []), ...entries];
      this.more = entries.length === PAGE;
      this.#cut();
      this.problem = null;
    } catch (cause) {
      if (asked === this.#asked) this.problem = asApiError(cause);
    } finally {
      if (asked === this.#asked) this.busy = false;
    }
  }

  /** Something happened. */
  add(entry: Entry): void {
    const newest = this.entries?.[0]?.id ?? 0;
    if (entry.id <= newest || !this.#shows(entry.tier)) return;
    this.entries = [entry, ...(this.entries ?? [])];
    this.#cut();
  }

  #shows(tier: TierId | null): boolean {
    return this.tier === null || this.tier === tier;
  }

  #cut(): void {
    if (this.entries === null || this.entries.length <= MOST) return;
    this.entries = this.entries.slice(0, MOST);
    this.more = true;
  }

  async #page(before?: number): Promise<Entry[]> {
    const query = new URLSearchParams({ limit: String(PAGE) });
    if (before !== undefined) query.set('before', String(before));
    if (this.tier !== null) query.set('tier', this.tier);
    const { entries } = await this.#api.get<{ entries: Entry[] }>(`/tierbar/v1/log?${query}`);
    return entries;
  }
}

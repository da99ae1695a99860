import { type Api, type ApiError, asApiError } from '../../lib/http';
import type { Entry, Kind } from '../../platform/openapi';

/** Entries per request. */
export const PAGE = 50;
/** Entries kept in the page; `tierbar log` shows older ones. */
export const MAX_ENTRIES = 1000;

export interface Filter {
  tier: string;
  kind: Kind | '';
  words: string;
}

/** The part of the event log that is shown, newest first. */
export class EventLog {
  entries = $state.raw<Entry[] | null>(null);
  /** Whether there are older entries. */
  more = $state(false);
  busy = $state(false);
  problem = $state<ApiError | null>(null);
  /** Which events are shown: those of a tier, of a kind, and with all of the words. Empty for all. */
  filter = $state.raw<Filter>({ tier: '', kind: '', words: '' });
  #api: Api;
  /** Counts loads: the answer to an older one is ignored. */
  #requests = 0;

  constructor(api: Api) {
    this.#api = api;
  }

  async show(change: Partial<Filter>): Promise<void> {
    this.filter = { ...this.filter, ...change };
    await this.load();
  }

  /** Reads the newest entries again, because some may have been missed. */
  async load(): Promise<void> {
    const request = ++this.#requests;
    this.busy = true;
    try {
      const entries = await this.#page();
      if (request !== this.#requests) return;
      // Entries that arrived live meanwhile are not in the answer.
      const newest = entries[0]?.id ?? 0;
      const since = (this.entries ?? []).filter((entry) => entry.id > newest && this.#shows(entry));
      this.entries = [...since, ...entries];
      this.more = entries.length === PAGE;
      this.problem = null;
    } catch (cause) {
      if (request === this.#requests) this.problem = asApiError(cause);
    } finally {
      if (request === this.#requests) this.busy = false;
    }
  }

  async older(): Promise<void> {
    const before = this.entries?.at(-1)?.id;
    if (before === undefined || this.busy) return;
    const request = this.#requests;
    this.busy = true;
    try {
      const entries = await this.#page(before);
      if (request !== this.#requests) return;
      this.entries = [...(this.entries ?? []), ...entries];
      this.more = entries.length === PAGE;
      this.#cut();
      this.problem = null;
    } catch (cause) {
      if (request === this.#requests) this.problem = asApiError(cause);
    } finally {
      if (request === this.#requests) this.busy = false;
    }
  }

  /** Adds an entry of the event stream. */
  add(entry: Entry): void {
    const newest = this.entries?.[0]?.id ?? 0;
    if (entry.id <= newest || !this.#shows(entry)) return;
    this.entries = [entry, ...(this.entries ?? [])];
    this.#cut();
  }

  #shows(entry: Entry): boolean {
    const { tier, kind, words } = this.filter;
    const sentence = entry.sentence.toLowerCase();
    return (
      (tier === '' || tier === entry.tier) &&
      (kind === '' || kind === entry.kind) &&
      words
        .toLowerCase()
        .split(/\s+/)
        .every((word) => sentence.includes(word))
    );
  }

  #cut(): void {
    if (this.entries === null || this.entries.length <= MAX_ENTRIES) return;
    this.entries = this.entries.slice(0, MAX_ENTRIES);
    this.more = true;
  }

  async #page(before?: number): Promise<Entry[]> {
    const { tier, kind, words } = this.filter;
    const query = {
      limit: PAGE,
      before,
      tier: tier || undefined,
      kind: kind || undefined,
      words: words || undefined,
    };
    const { entries } = await this.#api.get('/tierbar/v1/log', { query });
    return entries;
  }
}

import { type Api, type ApiError, asApiError } from '../../lib/http';
import type { CatalogModel, HubModel, HubRepository, OfferedFile, Verdict } from '../../platform/api';
import { type Lookup, lookup } from './lookup';

/** Owns the catalog as this page sees it: checked in with the program, so it is there offline too. */
export class Catalog {
  models = $state.raw<CatalogModel[] | null>(null);
  problem = $state.raw<ApiError | null>(null);
  #api: Api;

  constructor(api: Api) {
    this.#api = api;
  }

  async load(): Promise<void> {
    try {
      this.models = (await this.#api.get<{ models: CatalogModel[] }>('/tierbar/v1/catalog')).models;
      this.problem = null;
    } catch (cause) {
      this.problem = asApiError(cause);
    }
  }
}

/** What a look at the hub, or at one address, has found. */
export type Found =
  | { kind: 'results'; words: string; models: HubModel[] }
  | { kind: 'repository'; repository: HubRepository; back: Found | null }
  | { kind: 'file'; file: OfferedFile };

/** Owns one search: of several that were begun, the last one counts. */
export class Finder {
  found = $state.raw<Found | null>(null);
  problem = $state.raw<ApiError | null>(null);
  looking = $state(false);
  #api: Api;
  #asked = 0;

  constructor(api: Api) {
    this.#api = api;
  }

  async look(text: string): Promise<void> {
    const what = lookup(text);
    if (what === null) this.clear();
    else await this.#find(what, null);
  }

  /** Shows the files of one of the results. */
  async open(repository: string): Promise<void> {
    await this.#find({ repository }, this.found);
  }

  /** From a repository to the results that it was among. */
  back(): void {
    if (this.found?.kind === 'repository') this.#show(this.found.back);
  }

  clear(): void {
    this.#show(null);
  }

  #show(found: Found | null): void {
    this.#asked += 1;
    this.looking = false;
    this.problem = null;
    this.found = found;
  }

  async #find(what: Lookup, back: Found | null): Promise<void> {
    this.#asked += 1;
    const asked = this.#asked;
    this.looking = true;
    this.problem = null;
    try {
      const found = await this.#ask(what, back);
      if (asked === this.#asked) this.#show(found);
    } catch (cause) {
      if (asked !== this.#asked) return;
      this.looking = false;
      this.problem = asApiError(cause);
      this.found = back;
    }
  }

  async #ask(what: Lookup, back: Found | null): Promise<Found> {
    if ('words' in what) {
      const path = `/tierbar/v1/hub/search?q=${encodeURIComponent(what.words)}`;
      const { models } = await this.#api.get<{ models: HubModel[] }>(path);
      return { kind: 'results', words: what.words, models };
    }
    if ('repository' in what) {
      const path = `/tierbar/v1/hub/repository?id=${encodeURIComponent(what.repository)}`;
      return { kind: 'repository', repository: await this.#api.get<HubRepository>(path), back };
    }
    const path = `/tierbar/v1/models/fit?model=${encodeURIComponent(what.reference)}`;
    const fit = await this.#api.get<Verdict>(path);
    const { reference } = what;
    const bare: OfferedFile = {
      quant: '',
      reference,
      file: '',
      parts: 1,
      size_bytes: null,
      sha256: null,
      recommended: true,
      installed: false,
      fit,
    };
    return { kind: 'file', file: bare };
  }
}

import { type Api, type ApiError, asApiError } from '../../lib/http';
import type { HubModel, HubRepository, OfferedFile } from '../../platform/openapi';
import { parseQuery, type Query } from './query';

/** The result of a search of the hub, or of a check of one repository or file. */
export type SearchResult =
  | { kind: 'results'; keywords: string; models: HubModel[] }
  | { kind: 'repository'; repository: HubRepository; back: SearchResult | null }
  | { kind: 'file'; file: OfferedFile };

/** Owns one search. A new search replaces the previous one. */
export class ModelSearch {
  /** What was typed, which stays while a model's page is shown. */
  text = $state('');
  result = $state.raw<SearchResult | null>(null);
  problem = $state.raw<ApiError | null>(null);
  searching = $state(false);
  #api: Api;
  /** Counts searches: the answer to an older one is ignored. */
  #requests = 0;

  constructor(api: Api) {
    this.#api = api;
  }

  async search(text: string): Promise<void> {
    const query = parseQuery(text);
    if (query === null) this.clear();
    else await this.#run(query, null);
  }

  /** Shows the files of one of the results. */
  async open(repository: string): Promise<void> {
    await this.#run({ repository }, this.result);
  }

  /** Returns from a repository to the results. */
  back(): void {
    if (this.result?.kind === 'repository') this.#show(this.result.back);
  }

  clear(): void {
    this.#show(null);
  }

  #show(result: SearchResult | null): void {
    this.#requests += 1;
    this.searching = false;
    this.problem = null;
    this.result = result;
  }

  async #run(query: Query, back: SearchResult | null): Promise<void> {
    const request = ++this.#requests;
    this.searching = true;
    this.problem = null;
    try {
      const result = await this.#fetch(query, back);
      if (request === this.#requests) this.#show(result);
    } catch (cause) {
      if (request !== this.#requests) return;
      this.searching = false;
      this.problem = asApiError(cause);
      this.result = back;
    }
  }

  async #fetch(query: Query, back: SearchResult | null): Promise<SearchResult> {
    if ('keywords' in query) {
      const { models } = await this.#api.get('/tierbar/v1/hub/search', { query: { q: query.keywords } });
      return { kind: 'results', keywords: query.keywords, models };
    }
    if ('repository' in query) {
      const id = query.repository;
      const repository = await this.#api.get('/tierbar/v1/hub/repository', { query: { id } });
      return { kind: 'repository', repository, back };
    }
    const { reference } = query;
    const fit = await this.#api.get('/tierbar/v1/models/fit', { query: { model: reference } });
    const file: OfferedFile = {
      quant: '',
      loss: null,
      reference,
      file: '',
      parts: 1,
      size_bytes: null,
      sha256: null,
      recommended: true,
      reason: null,
      grounds: null,
      installed: false,
      fit,
    };
    return { kind: 'file', file };
  }
}

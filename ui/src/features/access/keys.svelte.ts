import { count } from '../../lib/format';
import { type Api, type ApiError, asApiError } from '../../lib/http';
import type { ApiKey, KeyRequest, NewKey } from '../../platform/openapi';

/** Owns the list of API keys, as this page sees it. */
export class ApiKeys {
  /** Keys that still work, newest first; `null` until the first read. */
  list = $state.raw<ApiKey[] | null>(null);
  /** The key that was created last. Its secret is shown until the page is left or the key is revoked. */
  created = $state.raw<NewKey | null>(null);
  problem = $state.raw<ApiError | null>(null);
  changing = $state(false);
  #api: Api;

  constructor(api: Api) {
    this.#api = api;
  }

  async load(): Promise<void> {
    try {
      const { keys } = await this.#api.get('/tierbar/v1/keys');
      const works = keys.filter(({ revoked_ms }) => revoked_ms == null);
      this.list = works.sort((a, b) => b.created_ms - a.created_ms);
    } catch (cause) {
      this.problem = asApiError(cause);
    }
  }

  /** Resolves to whether the key was created. */
  create(request: KeyRequest): Promise<boolean> {
    return this.#change(async () => {
      this.created = await this.#api.post('/tierbar/v1/keys', { body: request });
    });
  }

  revoke(name: string): Promise<boolean> {
    return this.#change(async () => {
      await this.#api.delete('/tierbar/v1/keys/{name}', { path: { name } });
      if (this.created?.name === name) this.created = null;
    });
  }

  async #change(call: () => Promise<void>): Promise<boolean> {
    this.changing = true;
    this.problem = null;
    try {
      await call();
      return true;
    } catch (cause) {
      this.problem = asApiError(cause);
      return false;
    } finally {
      this.changing = false;
      await this.load();
    }
  }
}

/** The limits of a key in a few words, such as `60 requests per minute`. */
export function describeLimits({ at_once, requests_per_minute, tokens_per_day }: ApiKey): string {
  const parts: string[] = [];
  if (requests_per_minute != null) parts.push(`${count(requests_per_minute)} requests per minute`);
  if (at_once != null) parts.push(`${at_once} at once`);
  if (tokens_per_day != null) parts.push(`${count(tokens_per_day)} tokens per day`);
  return parts.length === 0 ? 'No limits' : parts.join(' · ');
}

import { type Api, type ApiError, asApiError } from '../../lib/http';
import type { Config, EndpointEngine, SecretPlace } from '../../platform/openapi';

/** A tier that another server answers. */
export interface Server {
  tier: string;
  model: string;
  engine: EndpointEngine;
}

/** What a test of a server showed. */
export type Test =
  | { state: 'asking' }
  | { state: 'answered'; text: string; ms: number }
  | { state: 'failed'; error: ApiError };

export function serversOf(config: Config): Server[] {
  return Object.entries(config.tiers).flatMap(([tier, given]) => {
    const engine = given?.engine;
    if (given === undefined || engine === undefined || typeof engine === 'string' || !('endpoint' in engine))
      return [];
    return [{ tier, model: given.model, engine }];
  });
}

/** Owns what this page knows of servers' keys, and the tests that it made. */
export class Servers {
  secrets = $state.raw<SecretPlace[]>([]);
  tests = $state<Record<string, Test | undefined>>({});
  problem = $state.raw<ApiError | null>(null);
  #api: Api;

  constructor(api: Api) {
    this.#api = api;
  }

  async load(): Promise<void> {
    try {
      this.secrets = (await this.#api.get('/tierbar/v1/secrets')).secrets;
    } catch (cause) {
      this.problem = asApiError(cause);
    }
  }

  /** The key's place, by the server's name; `undefined` for a URL that is none. */
  secret(endpoint: string): SecretPlace | undefined {
    if (!URL.canParse(endpoint)) return undefined;
    const { host, hostname } = new URL(endpoint);
    return (
      this.secrets.find(({ name }) => name === host) ?? this.secrets.find(({ name }) => name === hostname)
    );
  }

  /** Stores a key, or removes it if it is empty. The server must be in the configuration. Resolves to whether that was done. */
  async setKey(endpoint: string, value: string): Promise<boolean> {
    await this.load();
    const name = this.secret(endpoint)?.name;
    if (name === undefined) return false;
    try {
      this.problem = null;
      if (value === '') await this.#api.delete('/tierbar/v1/secrets/{name}', { path: { name } });
      else await this.#api.put('/tierbar/v1/secrets/{name}', { path: { name }, body: { value } });
      await this.load();
      return true;
    } catch (cause) {
      this.problem = asApiError(cause);
      return false;
    }
  }

  /** Asks a server one short question. */
  async test(tier: string): Promise<void> {
    this.tests[tier] = { state: 'asking' };
    const begun = performance.now();
    try {
      const messages = [{ role: 'user' as const, content: 'Answer with the word OK.' }];
      // Enough for a model that thinks first to get to a word.
      const body = { model: tier, messages, max_tokens: 512, stream: false };
      const answer = await this.#api.post('/v1/chat/completions', { body });
      const message = 'choices' in answer ? answer.choices[0]?.message : undefined;
      const { content } = (message ?? {}) as { content?: string | null };
      const text = content?.trim() ?? '';
      this.tests[tier] = { state: 'answered', text: text.slice(0, 80), ms: performance.now() - begun };
    } catch (cause) {
      this.tests[tier] = { state: 'failed', error: asApiError(cause) };
    }
  }
}

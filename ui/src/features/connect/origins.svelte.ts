import { type Api, type ApiError, asApiError } from '../../lib/http';

/** Owns the list of origins whose pages may call, as this page sees it. Refused ones come with the status. */
export class Origins {
  allowed = $state.raw<string[]>([]);
  problem = $state.raw<ApiError | null>(null);
  changing = $state(false);
  #api: Api;
  #calls = 0;

  constructor(api: Api) {
    this.#api = api;
  }

  async load(): Promise<void> {
    await this.#take(() => this.#api.get('/tierbar/v1/origins'));
  }

  async allow(origin: string): Promise<void> {
    await this.#change(() => this.#api.post('/tierbar/v1/origins', { body: { origin } }));
  }

  /** Refuses an origin again, or forgets that it was refused. */
  async revoke(origin: string): Promise<void> {
    await this.#change(() => this.#api.delete('/tierbar/v1/origins', { query: { origin } }));
  }

  async #change(call: () => Promise<{ allowed: string[] }>): Promise<void> {
    this.changing = true;
    await this.#take(call);
    this.changing = false;
  }

  /** Takes an answer, unless a later call has been made: its answer is the newer one. */
  async #take(call: () => Promise<{ allowed: string[] }>): Promise<void> {
    this.#calls += 1;
    const mine = this.#calls;
    try {
      const { allowed } = await call();
      if (mine !== this.#calls) return;
      this.allowed = allowed;
      this.problem = null;
    } catch (cause) {
      if (mine === this.#calls) this.problem = asApiError(cause);
    }
  }
}

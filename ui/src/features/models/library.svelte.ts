import { plural } from '../../lib/format';
import { type Api, type ApiError, asApiError } from '../../lib/http';
import type { LibraryModel } from '../../platform/openapi';
import type { ModelList } from './models';

/** The outcome of an action on a model. */
export interface Outcome {
  good: boolean;
  text: string;
  /** It could not be moved to the Trash, but can be deleted permanently. */
  untrashable?: boolean;
}

/** Owns the list of installed models as this page sees it, and the actions on one of them. */
export class Library {
  list = $state.raw<ModelList | null>(null);
  problem = $state.raw<ApiError | null>(null);
  /** The action in progress, by the model's path. */
  busy = $state<Record<string, string | undefined>>({});
  outcomes = $state<Record<string, Outcome | undefined>>({});
  #api: Api;
  /** Counts loads: the answer to an older one is ignored. */
  #requests = 0;

  constructor(api: Api) {
    this.#api = api;
  }

  get models(): LibraryModel[] {
    return this.list?.models ?? [];
  }

  /** Reads the list again. Of two reads, the later one counts. */
  async load(): Promise<void> {
    const request = ++this.#requests;
    try {
      const list = await this.#api.get('/tierbar/v1/models');
      if (request !== this.#requests) return;
      this.list = list;
      this.problem = null;
    } catch (cause) {
      if (request === this.#requests) this.problem = asApiError(cause);
    }
  }

  /** Hashes the whole file. */
  async verify(model: LibraryModel): Promise<void> {
    await this.#do(model, 'Verifying…', async () => {
      const { matches, sha256 } = await this.#api.post('/tierbar/v1/models/{id}/verify', {
        path: { id: model.id },
      });
      await this.load();
      if (matches === true) return { good: true, text: 'Verified: the file matches its published checksum.' };
      if (matches === false)
        return {
          good: false,
          text: 'Damaged: the file does not match its published checksum. Download it again.',
        };
      return {
        good: true,
        text: `Readable, but without a published checksum to compare. Its SHA-256 is ${sha256}.`,
      };
    });
  }

  /** Moves a model to the Trash, or deletes it permanently where there is no Trash. */
  async remove(model: LibraryModel, permanently = false): Promise<void> {
    await this.#do(model, 'Removing…', async () => {
      try {
        await this.#api.delete('/tierbar/v1/models/{id}', {
          path: { id: model.id },
          query: permanently ? { permanently } : {},
        });
      } catch (cause) {
        const error = asApiError(cause);
        return { good: false, text: error.sentences, untrashable: error.code === 'storage' && !permanently };
      }
      await this.load();
      return undefined;
    });
  }

  /** Adds a folder whose models are used in place. Resolves to a message; throws `ApiError`. */
  async addFolder(path: string): Promise<string> {
    const { models } = await this.#api.post('/tierbar/v1/models/import', { body: { path } });
    await this.load();
    if (models.length === 0)
      return 'No models found yet. Models that you add to this folder will appear here.';
    return plural(models.length, ['# model found.', '# models found.']);
  }

  async #do(model: LibraryModel, busy: string, work: () => Promise<Outcome | undefined>): Promise<void> {
    this.busy[model.path] = busy;
    this.outcomes[model.path] = undefined;
    try {
      this.outcomes[model.path] = await work();
    } catch (cause) {
      this.outcomes[model.path] = { good: false, text: asApiError(cause).sentences };
    } finally {
      this.busy[model.path] = undefined;
    }
  }
}

import { count } from '../../lib/format';
import { type Api, type ApiError, asApiError } from '../../lib/http';
import type { LibraryModel } from '../../platform/api';
import type { ModelList } from './models';

/** What became of something that was done with a model. */
export interface Outcome {
  good: boolean;
  text: string;
  /** It could not go to the Trash, but can be deleted for good. */
  untrashable?: boolean;
}

interface Verified {
  sha256: string;
  expected: string | null;
  matches: boolean | null;
}

/** Owns the list of models on this machine as this page sees it, and what is done with one of them. */
export class Library {
  list = $state.raw<ModelList | null>(null);
  problem = $state.raw<ApiError | null>(null);
  /** What is under way, by the model's path. */
  busy = $state<Record<string, string | undefined>>({});
  outcomes = $state<Record<string, Outcome | undefined>>({});
  #api: Api;
  #asked = 0;

  constructor(api: Api) {
    this.#api = api;
  }

  get models(): LibraryModel[] {
    return this.list?.models ?? [];
  }

  /** Reads the list again. Of two reads the later one counts, whichever ends last. */
  async load(): Promise<void> {
    this.#asked += 1;
    const asked = this.#asked;
    try {
      const list = await this.#api.get<ModelList>('/tierbar/v1/models');
      if (asked !== this.#asked) return;
      this.list = list;
      this.problem = null;
    } catch (cause) {
      if (asked === this.#asked) this.problem = asApiError(cause);
    }
  }

  /** Hashes the whole file. */
  async verify(model: LibraryModel): Promise<void> {
    await this.#do(model, 'Verifying…', async () => {
      const { matches, sha256 } = await this.#api.post<Verified>(`${at(model)}/verify`);
      await this.load();
      if (matches === true) return { good: true, text: 'Verified: these are the bytes that were published.' };
      if (matches === false)
        return {
          good: false,
          text: 'Damaged: its bytes differ from those that were published. Get it again.',
        };
      return {
        good: true,
        text: `All of it can be read. Nobody has told what its sha256 must be; it is ${sha256}.`,
      };
    });
  }

  /** Moves it to the Trash; or deletes it for good, where there is no Trash. */
  async remove(model: LibraryModel, permanently = false): Promise<void> {
    await this.#do(model, 'Removing…', async () => {
      try {
        await this.#api.delete(permanently ? `${at(model)}?permanently=true` : at(model));
      } catch (cause) {
        const error = asApiError(cause);
        return { good: false, text: error.sentences, untrashable: error.code === 'storage' && !permanently };
      }
      await this.load();
      return undefined;
    });
  }

  /** Adds a folder whose models are used where they are. Resolves to what to say about it; throws `ApiError`. */
  async addFolder(path: string): Promise<string> {
    const { models } = await this.#api.post<{ models: LibraryModel[] }>('/tierbar/v1/models/import', {
      path,
    });
    await this.load();
    if (models.length === 0)
      return 'No models found yet. Models that you add to this folder will appear here.';
    return models.length === 1 ? '1 model found.' : `${count(models.length)} models found.`;
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

function at(model: LibraryModel): string {
  return `/tierbar/v1/models/${encodeURIComponent(model.id)}`;
}

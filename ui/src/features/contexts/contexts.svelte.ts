import { type Api, type ApiError, asApiError } from '../../lib/http';
import type { Contexts } from '../../platform/openapi';

type Saved = Contexts['data'][number];

/** A saved context: on this computer, in the store, or both. */
export interface Context {
  name: string;
  saved: Saved;
  here: boolean;
  stored: boolean;
  /** Whether the two differ. */
  differs: boolean;
}

/** What was refused because the destination has another context of that name. */
export interface Conflict {
  name: string;
  to: 'store' | 'here';
}

/** Owns the saved contexts of this computer and of the store as this page sees them. */
export class SavedContexts {
  #here = $state.raw<Saved[]>([]);
  #stored = $state.raw<Saved[]>([]);
  list = $derived(merged(this.#here, this.#stored));
  /** The name of the context that is being copied. */
  copying = $state<{ name: string; to: 'store' | 'here' } | null>(null);
  /** The context that is being saved, or loaded into memory. */
  working = $state<{ name: string; does: 'save' | 'load' } | null>(null);
  /** The name of the context that was loaded last. */
  loaded = $state<string | null>(null);
  problem = $state.raw<ApiError | null>(null);
  /** Why the store cannot be read. */
  storeProblem = $state.raw<ApiError | null>(null);
  conflict = $state.raw<Conflict | null>(null);
  #api: Api;
  #hasStore: () => boolean;

  constructor(api: Api, hasStore: () => boolean) {
    this.#api = api;
    this.#hasStore = hasStore;
  }

  async load(): Promise<void> {
    const hasStore = this.#hasStore();
    try {
      this.#here = (await this.#api.get('/v1/context')).data;
    } catch {
      // Without the list, there is nothing to change. The page says elsewhere that the host does not respond.
      return;
    }
    try {
      this.#stored = hasStore ? (await this.#api.get('/v1/context/store')).data : [];
      this.storeProblem = null;
    } catch (cause) {
      this.#stored = [];
      this.storeProblem = asApiError(cause);
    }
  }

  /** Saves the last conversation of a tier. Returns whether it is saved, or `taken` if another context has the name. */
  async save(name: string, model: string, replace: boolean): Promise<boolean | 'taken'> {
    const body = { name, model, replace };
    const work = () => this.#api.post('/v1/context/save', { body });
    if (await this.#work({ name, does: 'save' }, work)) return true;
    if (this.problem?.code !== 'conflict') return false;
    this.problem = null;
    return 'taken';
  }

  /** Loads a context into memory, with its model. */
  async restore(name: string): Promise<void> {
    this.loaded = null;
    const work = () => this.#api.post('/v1/context/load', { body: { name } });
    if (await this.#work({ name, does: 'load' }, work)) this.loaded = name;
  }

  async #work(
    working: { name: string; does: 'save' | 'load' },
    work: () => Promise<unknown>,
  ): Promise<boolean> {
    this.working = working;
    this.problem = null;
    try {
      await work();
    } catch (cause) {
      this.problem = asApiError(cause);
    }
    this.working = null;
    await this.load();
    return this.problem === null;
  }

  /** Uploads a context, or downloads it. */
  async copy(name: string, to: 'store' | 'here', replace = false): Promise<void> {
    this.copying = { name, to };
    this.problem = null;
    this.conflict = null;
    try {
      const body = { name, replace };
      if (to === 'store') await this.#api.post('/v1/context/upload', { body });
      else await this.#api.post('/v1/context/download', { body });
    } catch (cause) {
      const error = asApiError(cause);
      if (error.code === 'conflict') this.conflict = { name, to };
      else this.problem = error;
    }
    this.copying = null;
    await this.load();
  }

  /** Deletes a context from this computer, or if it is only in the store, from there. */
  async remove({ name, here }: Context): Promise<void> {
    this.problem = null;
    try {
      await this.#api.post('/v1/context/delete', { body: { name, store: !here } });
    } catch (cause) {
      this.problem = asApiError(cause);
    }
    await this.load();
  }
}

function merged(here: Saved[], stored: Saved[]): Context[] {
  const list = new Map<string, Context>();
  for (const saved of here)
    list.set(saved.name, { name: saved.name, saved, here: true, stored: false, differs: false });
  for (const saved of stored) {
    const known = list.get(saved.name);
    if (!known) list.set(saved.name, { name: saved.name, saved, here: false, stored: true, differs: false });
    else {
      known.stored = true;
      known.differs = known.saved.created !== saved.created || known.saved.bytes !== saved.bytes;
    }
  }
  return [...list.values()].sort((a, b) => b.saved.created - a.saved.created || (a.name < b.name ? -1 : 1));
}

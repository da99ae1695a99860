import { type Api, type ApiError, asApiError } from '../../lib/http';
import type { FolderRoom, Priority, SetupPlan, TierAnswer, TierPlan } from '../../platform/openapi';
import { modelPatch } from '../tiers/chosen';

/** Of the downloads, in order of use. */
const PRIORITIES: Priority[] = ['high', 'normal', 'low'];

/** Where the page keeps that a set-up was started here and has not been closed. */
const STARTED = 'tierbar-setup-started';

/** Owns the plan of a set-up as this page sees it, and carries it out. The host goes on without this page. */
export class SetUp {
  plan = $state.raw<SetupPlan | null>(null);
  /** Why the plan could not be read. */
  problem = $state.raw<ApiError | null>(null);
  /** Why the last thing that the user did failed. */
  failure = $state.raw<ApiError | null>(null);
  /** While models are being assigned and their downloads started. */
  starting = $state(false);
  /** Whether tiers that are done are shown: after a set-up, until the user closes it. */
  started = $state(isStarted());
  /** How the tiers have answered, in the order in which they are asked. */
  answers = $state.raw<TierAnswer[]>([]);
  /** Where models go that do not go to the models folder, by tier. */
  placed = $state<Record<string, FolderRoom | undefined>>({});
  /** Why a folder was refused, by tier. */
  refusals = $state<Record<string, ApiError | undefined>>({});
  #api: Api;

  constructor(api: Api) {
    this.#api = api;
  }

  get asking(): boolean {
    return this.answers.some(({ state }) => state === 'waiting' || state === 'asking');
  }

  async load(): Promise<void> {
    try {
      this.plan = await this.#api.get('/tierbar/v1/setup');
      this.problem = null;
    } catch (cause) {
      this.problem = asApiError(cause);
    }
  }

  /**
   * Assigns what is installed, and downloads the rest in order of use. All is sent at once, so that the host goes on if the window
   * closes now; the priority keeps the order.
   */
  async start(tiers: TierPlan[]): Promise<void> {
    this.starting = true;
    this.#keep(true);
    await this.#try(async () => {
      const missing = tiers.filter(({ installed }) => installed === null);
      const begun = tiers.map((row) =>
        row.installed === null
          ? this.#download(row, missing.indexOf(row))
          : this.#assign(row.tier, row.installed),
      );
      const failed = (await Promise.allSettled(begun)).find(({ status }) => status === 'rejected');
      if (failed?.status === 'rejected') throw failed.reason;
    });
    await this.load();
    this.starting = false;
  }

  #download({ tier, reference }: TierPlan, place: number): Promise<unknown> {
    const folder = this.placed[tier]?.path;
    const priority = PRIORITIES[place] ?? 'low';
    return this.#api.post('/tierbar/v1/downloads', {
      body: { reference, tier, priority, ...(folder && { folder }) },
    });
  }

  #assign(tier: string, model: string): Promise<unknown> {
    return this.#api.patch('/tierbar/v1/config', { body: { tiers: { [tier]: modelPatch(model) } } });
  }

  /** Has a tier's model go to this folder; to the models folder if it is empty. Resolves to whether it can. */
  async place(tier: string, path: string): Promise<boolean> {
    this.refusals[tier] = undefined;
    if (path === '') {
      this.placed[tier] = undefined;
      return true;
    }
    try {
      this.placed[tier] = await this.#api.get('/tierbar/v1/setup/folder', { query: { path } });
      return true;
    } catch (cause) {
      this.refusals[tier] = asApiError(cause);
      return false;
    }
  }

  /** Keeps the answers that are known if the host does not respond, which the page says elsewhere. */
  async loadAnswers(): Promise<void> {
    try {
      this.answers = (await this.#api.get('/tierbar/v1/setup/answers')).answers;
    } catch {
      // The next look may succeed.
    }
  }

  /** Has the host ask these tiers, one after another. */
  async ask(tiers: string[]): Promise<void> {
    await this.#try(async () => {
      this.answers = (await this.#api.post('/tierbar/v1/setup/answers', { body: { tiers } })).answers;
    });
  }

  async stopAsking(): Promise<void> {
    await this.#try(async () => {
      await this.#api.delete('/tierbar/v1/setup/answers');
      this.answers = [];
    });
  }

  /** Puts away what is done. */
  async close(): Promise<void> {
    await this.stopAsking();
    this.#keep(false);
  }

  #keep(started: boolean): void {
    this.started = started;
    try {
      if (started) localStorage.setItem(STARTED, 'true');
      else localStorage.removeItem(STARTED);
    } catch {
      // Without storage, it holds for this page.
    }
  }

  async #try(act: () => Promise<void>): Promise<void> {
    this.failure = null;
    try {
      await act();
    } catch (cause) {
      this.failure = asApiError(cause);
    }
  }
}

function isStarted(): boolean {
  try {
    return localStorage.getItem(STARTED) !== null;
  } catch {
    return false;
  }
}

import { type Api, type ApiError, asApiError } from '../../lib/http';
import type { FolderRoom, Priority, SetupPlan, TierAnswer, TierPlan } from '../../platform/openapi';
import { modelPatch } from '../tiers/chosen';

/** Of the downloads, in order of use. */
const PRIORITIES: Priority[] = ['high', 'normal', 'low'];

/** After this time, the host has measured a computer that has nothing else to do. */
const MEASURED_MS = 2000;

/** Where the page keeps that a set-up was started here and has not been closed: the tiers that are still to be asked. */
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
  started = $state(unasked() !== null);
  /** The tiers of a set-up that are to be asked, once all of them have their models. */
  unasked = $state.raw<string[]>(unasked() ?? []);
  /** How the tiers have answered, in the order in which they are asked. */
  answers = $state.raw<TierAnswer[]>([]);
  /** Where models go that do not go to the models folder, by tier. */
  placed = $state<Record<string, FolderRoom | undefined>>({});
  /** Why a folder was refused, by tier. */
  refusals = $state<Record<string, ApiError | undefined>>({});
  #api: Api;
  /** Whether the speeds that the first plan lacked were looked for once more. */
  #again = false;

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
      if (this.plan.tiers.every(({ fit }) => fit.speed) || this.#again) return;
      // The host answers before it has measured this computer.
      this.#again = true;
      setTimeout(() => void this.load(), MEASURED_MS);
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
    this.#keep([...this.unasked, ...tiers.map(({ tier }) => tier)]);
    await this.#try(async () => {
      const missing = tiers.filter(({ installed }) => installed === null);
      const begun = tiers.map((row) =>
        row.installed === null
          ? this.#download(row, missing.indexOf(row))
          : this.#assign(row.tier, row.installed),
      );
      const outcomes = await Promise.allSettled(begun);
      const failed = tiers.filter((_, at) => outcomes[at]?.status === 'rejected').map(({ tier }) => tier);
      this.#keep(this.unasked.filter((tier) => !failed.includes(tier)));
      for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
    });
    await this.load();
    this.starting = false;
  }

  /** Gives one tier its model, without the questions at the end of a whole set-up. */
  async take(row: TierPlan): Promise<void> {
    this.starting = true;
    await this.#try(async () => {
      await (row.installed === null ? this.#download(row, 0) : this.#assign(row.tier, row.installed));
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

  /** Asks these tiers at the end of a set-up, unless another page has. */
  async askAtEnd(tiers: string[]): Promise<void> {
    const left = unasked() ?? tiers;
    this.#keep([]);
    const still = tiers.filter((tier) => left.includes(tier));
    if (still.length > 0) await this.ask(still);
  }

  /** Has the host ask these tiers, one after another. */
  async ask(tiers: string[]): Promise<void> {
    if (this.started) this.#keep(this.unasked.filter((tier) => !tiers.includes(tier)));
    await this.#try(async () => {
      this.answers = (await this.#api.post('/tierbar/v1/setup/answers', { body: { tiers } })).answers;
    });
  }

  async stopAsking(): Promise<void> {
    if (this.started) this.#keep([]);
    await this.#try(async () => {
      await this.#api.delete('/tierbar/v1/setup/answers');
      this.answers = [];
    });
  }

  /** Puts away what is done. */
  async close(): Promise<void> {
    await this.stopAsking();
    this.#keep(null);
  }

  /** Keeps that a set-up was started, with the tiers to ask; `null` if it is closed. */
  #keep(tiers: string[] | null): void {
    this.started = tiers !== null;
    this.unasked = [...new Set(tiers ?? [])];
    try {
      if (tiers) localStorage.setItem(STARTED, JSON.stringify(this.unasked));
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

/** Returns the tiers that a set-up is still to ask; `null` without one that was started here, or without storage. */
function unasked(): string[] | null {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(STARTED) ?? 'null');
    if (kept === null) return null;
    return Array.isArray(kept) ? kept.filter((tier) => typeof tier === 'string') : [];
  } catch {
    return null;
  }
}

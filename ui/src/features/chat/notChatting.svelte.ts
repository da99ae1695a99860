import type { Api } from '../../lib/http';
import type { TierStatus } from '../../platform/openapi';
import { canChat } from '../models/facts';
import { AUTO } from '../tiers/tiers';
import type { Turn } from './turns';

/** Knows which models continue a text instead of answering: their files have no chat template. */
export class NotChatting {
  #ids = $state.raw<ReadonlySet<string>>(new Set());
  #api: Api;

  constructor(api: Api) {
    this.#api = api;
  }

  async load(): Promise<void> {
    try {
      const { models } = await this.#api.get('/tierbar/v1/models');
      this.#ids = new Set(models.filter((model) => !canChat(model)).map(({ id }) => id));
    } catch {
      // Then nothing is said of them.
    }
  }

  /** The model that answers this chat, if it is one of them: the tier's, or of those that take turns the last one. */
  answering(model: string, tiers: TierStatus[], turns: Turn[]): string | null {
    const tier = tiers.find(({ id }) => id === model);
    const id = model === AUTO ? turns.at(-1)?.shown?.model : tier?.model;
    return id != null && this.#ids.has(id) ? id : null;
  }
}

import type { TierStatus } from '../../platform/openapi';
import { AUTO, holdsModel } from '../tiers/tiers';

/** Waits for a few keys, so that a slip loads nothing. */
const SETTLED_MS = 300;
/** Shorter than the time for which the host keeps a tier expected. */
const AGAIN_MS = 20_000;

interface Surroundings {
  tiers(): TierStatus[];
  /** Announces to the host which tier will be requested. */
  expect(model: string): Promise<unknown>;
}

/** Loads a tier while its first message is typed. */
export class Preload {
  #around: Surroundings;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #told: { model: string; at: number } | null = null;

  constructor(around: Surroundings) {
    this.#around = around;
  }

  /** Called while a message to `model` is typed. */
  typed(model: string): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#tell(model), SETTLED_MS);
  }

  /** Called when the message was sent or typing ended. */
  done(): void {
    clearTimeout(this.#timer);
  }

  #tell(model: string): void {
    const now = performance.now();
    const lately = this.#told?.model === model && now - this.#told.at < AGAIN_MS;
    if (lately || document.hidden || !waits(model, this.#around.tiers())) return;
    this.#told = { model, at: now };
    // Sending the message reports the error.
    this.#around.expect(model).catch(() => {});
  }
}

/** Whether a request for `model` would wait for a load that has not started. A failed load is left for the user to retry. */
export function waits(model: string, tiers: TierStatus[]): boolean {
  const isUp = ({ state }: TierStatus) => holdsModel(state) || state === 'starting';
  const mayLoad = ({ model, state }: TierStatus) =>
    model !== null && (state === 'stopped' || state === 'stopping');
  if (model === AUTO) return !tiers.some(isUp) && tiers.some(mayLoad);
  return tiers.some((tier) => tier.id === model && mayLoad(tier));
}

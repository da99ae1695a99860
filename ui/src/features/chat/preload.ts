import type { TierStatus } from '../../platform/api';
import { AUTO, holdsModel } from '../tiers/tiers';

/** Typing begins with a few keys; a slip is no intention. */
const SETTLED_MS = 300;
/** The host expects somebody for longer than this. */
const AGAIN_MS = 20_000;

interface Surroundings {
  tiers(): TierStatus[];
  /** Tells the host who will be asked. */
  expect(model: string): Promise<unknown>;
}

/** Has a tier loaded while its first message is being written. */
export class Preload {
  #around: Surroundings;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #told: { model: string; at: number } | null = null;

  constructor(around: Surroundings) {
    this.#around = around;
  }

  /** Something is being written to `model`. */
  typed(model: string): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#tell(model), SETTLED_MS);
  }

  /** It was sent, or nobody writes any more. */
  done(): void {
    clearTimeout(this.#timer);
  }

  #tell(model: string): void {
    const now = performance.now();
    const lately = this.#told?.model === model && now - this.#told.at < AGAIN_MS;
    if (lately || document.hidden || !waits(model, this.#around.tiers())) return;
    this.#told = { model, at: now };
    // Whoever sends the message is told what is wrong.
    this.#around.expect(model).catch(() => {});
  }
}

/** Whether a request for `model` would have to wait for a load that has not begun. One that has failed is for the user to try again. */
export function waits(model: string, tiers: TierStatus[]): boolean {
  const isUp = ({ state }: TierStatus) => holdsModel(state) || state === 'starting';
  const mayLoad = ({ model, state }: TierStatus) =>
    model !== null && (state === 'stopped' || state === 'stopping');
  if (model === AUTO) return !tiers.some(isUp) && tiers.some(mayLoad);
  return tiers.some((tier) => tier.id === model && mayLoad(tier));
}

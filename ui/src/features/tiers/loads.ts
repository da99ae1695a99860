import type { TierState, TierStatus } from '../../platform/openapi';

/** Records when each tier last loaded, so that an answer can show how much of its wait that was. */
export class Loads {
  #states = new Map<string, TierState>();
  #began = new Map<string, number>();
  #loads = new Map<string, { from: number; to: number }>();

  observe(tiers: TierStatus[], now: number): void {
    for (const { id, state } of tiers) {
      const before = this.#states.get(id);
      this.#states.set(id, state);
      if (state === 'starting' && before !== 'starting') this.#began.set(id, now);
      const from = this.#began.get(id);
      if (before === 'starting' && from !== undefined && (state === 'ready' || state === 'busy')) {
        this.#loads.set(id, { from, to: now });
      }
    }
  }

  /** Returns the milliseconds of a load that ended between `since` and `until`, counted from `since`; `null` if none was seen. */
  within(tier: string | null, since: number, until: number): number | null {
    const load = tier === null ? undefined : this.#loads.get(tier);
    if (load === undefined || load.to < since || load.to > until) return null;
    return load.to - Math.max(load.from, since);
  }
}

import { memory, plural } from '../../lib/format';
import type { Line, LoadPlan, Ram, Status, TierState, TierStatus } from '../../platform/openapi';
import { GROUP } from '../models/labels';
import { holdsModel } from '../tiers/tiers';

/** RAM as one bar, from the left: other apps, the tiers, what is available. In shares of the whole. */
export interface MemoryBar {
  others: number;
  tiers: TierShare[];
  /** Where the budget begins, counted from the left; it extends to the right end. */
  mark: number;
}

/** A tier's share of the bar: what it holds, and what its plan still allows, as far as there is room. */
export interface TierShare {
  id: string;
  state: TierState;
  width: number;
  /** Of `width`. */
  parts: { group: (typeof GROUP)[Line['what']] | 'beyond'; width: number }[];
  /** The measured part of `width`. */
  held: number;
  /** How far its load has progressed, 0 to 1. */
  loaded: number;
}

export function usedRam(ram: Ram): number {
  return Math.max(ram.total_bytes - ram.available_bytes, 0);
}

/** Splits a plan into the lines that count toward its sum and those that stay on disk. */
export function planLines(plan: LoadPlan): { counted: Line[]; paged: Line[] } {
  const isPaged = ({ what }: Line) => GROUP[what] === 'paged';
  return { counted: plan.lines.filter((line) => !isPaged(line)), paged: plan.lines.filter(isPaged) };
}

export function plannedBytes({ plan }: TierStatus): number {
  return plan === null ? 0 : planLines(plan).counted.reduce((sum, { bytes }) => sum + bytes, 0);
}

export function heldBytes({ footprint_bytes: footprint }: TierStatus): number {
  return footprint ?? 0;
}

/** Returns the RAM in use, less the measured memory of the tiers. */
export function otherBytes({ ram, tiers }: Pick<Status, 'ram' | 'tiers'>): number {
  return Math.max(usedRam(ram) - sum(tiers, heldBytes), 0);
}

export function memoryBar({ ram, tiers, budget }: Pick<Status, 'ram' | 'tiers' | 'budget'>): MemoryBar {
  const others = otherBytes({ ram, tiers });
  const holding = tiers.filter((tier) => heldBytes(tier) > 0 || plannedBytes(tier) > 0);
  const room = Math.max(ram.total_bytes - others, 0);
  const held = sum(holding, heldBytes);
  const toCome = sum(holding, (tier) => Math.max(plannedBytes(tier) - heldBytes(tier), 0));
  // Readings from different times may add up to more than the total: held memory comes first, planned memory shares the rest.
  const heldScale = held > room ? room / held : 1;
  const toComeScale = toCome > 0 ? Math.min(Math.max(room - held, 0) / toCome, 1) : 0;
  const share = (bytes: number) => (ram.total_bytes > 0 ? Math.min(bytes / ram.total_bytes, 1) : 0);
  return {
    others: share(others),
    mark: share(Math.max(ram.total_bytes - budget.total_bytes, 0)),
    tiers: holding.map((tier) => {
      const [planned, measured] = [plannedBytes(tier), heldBytes(tier)];
      const whole = Math.max(planned, measured);
      const width = measured * heldScale + Math.max(planned - measured, 0) * toComeScale;
      const parts: TierShare['parts'] = tier.plan
        ? planLines(tier.plan).counted.map(({ what, bytes }) => ({
            group: GROUP[what],
            width: bytes / whole,
          }))
        : [];
      if (measured > planned)
        parts.push({ group: tier.plan ? 'beyond' : 'rest', width: (measured - planned) / whole });
      return {
        id: tier.id,
        state: tier.state,
        width: share(width),
        parts,
        held: width > 0 ? Math.min((measured * heldScale) / width, 1) : 0,
        loaded: tier.state === 'starting' ? (tier.loaded_percent ?? 0) / 100 : 1,
      };
    }),
  };
}

/** Describes a tier's memory; `null` if it holds none. */
export function memoryText(tier: TierStatus): string | null {
  const planned = tier.plan && memory(plannedBytes(tier));
  const held = tier.footprint_bytes === null ? null : memory(tier.footprint_bytes);
  if (planned) return held ? `${held} used of ${planned} planned` : `${planned} planned`;
  return held && `${held} used`;
}

/** Describes what models hold: `1 model loaded · 62 MB`. */
export function loadedText(tiers: TierStatus[]): string {
  const models = tiers.filter(({ state, pid }) => holdsModel(state) && pid !== null);
  if (models.length === 0) return 'No model loaded';
  const held = sum(models, heldBytes);
  const count = plural(models.length, ['# model loaded', '# models loaded']);
  return held > 0 ? `${count} · ${memory(held)}` : count;
}

export function sum<T>(items: T[], bytes: (item: T) => number): number {
  return items.reduce((total, item) => total + bytes(item), 0);
}

import type { Status, TierStatus } from '../../platform/openapi';

/** Of memory, what is seen in the bar and rounds to another figure. */
const SEEN = 1 / 64;
const SEEN_BYTES = 2 ** 26;

/** Whether a status differs from the one before only in readings, and too little to be worth a redraw. */
export function isMinorChange(before: Status, after: Status): boolean {
  const rest = (Object.keys(after) as (keyof Status)[]).filter((key) => !READINGS.includes(key));
  return (
    rest.every((key) => Object.is(before[key], after[key])) &&
    before.ram.pressure === after.ram.pressure &&
    before.ram.total_bytes === after.ram.total_bytes &&
    isNear(before.ram.available_bytes, after.ram.available_bytes, after.ram.total_bytes * SEEN) &&
    isNear(before.swap.used_bytes, after.swap.used_bytes, SEEN_BYTES) &&
    before.swap.growth_bytes_per_minute > 0 === after.swap.growth_bytes_per_minute > 0 &&
    (before.tiers === after.tiers || isSameButFootprints(before.tiers, after.tiers))
  );
}

const READINGS: (keyof Status)[] = ['ram', 'swap', 'tiers'];

function isNear(before: number, after: number, most: number): boolean {
  return Math.abs(before - after) < most;
}

function isSameButFootprints(before: TierStatus[], after: TierStatus[]): boolean {
  const rest = (tiers: TierStatus[]) =>
    JSON.stringify(tiers.map((tier) => ({ ...tier, footprint_bytes: null })));
  return (
    rest(before) === rest(after) &&
    before.every(({ footprint_bytes }, at) =>
      isNear(footprint_bytes ?? 0, after[at]?.footprint_bytes ?? 0, SEEN_BYTES),
    )
  );
}

import { describe, expect, it } from 'vitest';
import type { Status } from '../../platform/openapi';
import { STATUS } from '../../testing/host';
import { isMinorChange } from './minor';

const MIB = 2 ** 20;
const { ram, swap, tiers } = STATUS;
const changed = (part: Partial<Status>) => isMinorChange(STATUS, { ...STATUS, ...part });

describe('a minor change', () => {
  it('is of readings, and too small to be seen', () => {
    expect(changed({})).toBe(true);
    expect(changed({ ram: { ...ram, available_bytes: ram.available_bytes + MIB } })).toBe(true);
    expect(changed({ swap: { ...swap, used_bytes: swap.used_bytes + MIB } })).toBe(true);
    expect(
      changed({
        tiers: tiers.map((tier) => ({ ...tier, footprint_bytes: (tier.footprint_bytes ?? 0) + MIB })),
      }),
    ).toBe(true);
  });

  it('is no change of what people wait for', () => {
    expect(changed({ ram: { ...ram, available_bytes: ram.available_bytes - ram.total_bytes / 32 } })).toBe(
      false,
    );
    expect(changed({ ram: { ...ram, pressure: 'critical' } })).toBe(false);
    expect(changed({ swap: { ...swap, growth_bytes_per_minute: 1 } })).toBe(false);
    expect(changed({ swap: { ...swap, used_bytes: swap.used_bytes + 100 * MIB } })).toBe(false);
    expect(changed({ tiers: tiers.map((tier) => ({ ...tier, state: 'busy' })) })).toBe(false);
    expect(changed({ tiers: tiers.slice(1) })).toBe(false);
    expect(changed({ config_revision: STATUS.config_revision + 1 })).toBe(false);
    expect(changed({ downloads: [] })).toBe(false);
  });
});

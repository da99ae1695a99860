import { describe, expect, it } from 'vitest';
import type { TierPaging, TierStatus } from '../../platform/openapi';
import { STATUS } from '../../testing/host';
import {
  cells,
  describeDisk,
  describeHeld,
  describeWear,
  opacity,
  reportsExperts,
  rowHeight,
} from './experts';

const PAGING: TierPaging = {
  tier: 'heavy',
  model: 'mixture',
  placement: 'cache',
  layers: ['..09', '5...'],
  held_bytes: 1.5 * 2 ** 30,
  all_bytes: 4 * 2 ** 30,
  hit_rate: 0.93,
  read_bytes: 0,
  wait_ms: 0,
};

describe('what is in memory', () => {
  it('is counted in experts, and weighed in layers', () => {
    expect(describeHeld(PAGING)).toBe('3 of 8 experts in memory');
    const layers = Array.from({ length: 40 }, () => `${'1'.repeat(31)}${'.'.repeat(33)}`);
    expect(describeHeld({ ...PAGING, layers })).toBe('1,240 of 2,560 experts in memory');
    expect(describeHeld({ ...PAGING, placement: 'stream' })).toBe('1.5 GB of 4 GB of layers in memory');
  });

  it('is reported by loaded tiers that page themselves', () => {
    const primary = STATUS.tiers[1] as TierStatus;
    const placed = (placement: TierPaging['placement'], state: TierStatus['state'] = 'ready') =>
      reportsExperts({
        ...primary,
        state,
        plan: { placement, context_tokens: 1, kind: 'generative', lines: [] },
      });
    expect(['cache', 'advise', 'stream', 'mmap', 'resident'].map((name) => placed(name as never))).toEqual([
      true,
      true,
      true,
      false,
      false,
    ]);
    expect(placed('cache', 'busy')).toBe(true);
    expect(placed('cache', 'starting')).toBe(false);
    expect(reportsExperts({ ...primary, plan: null })).toBe(false);
  });
});

describe('the disk', () => {
  const disk = {
    read_bytes_per_second: 850_000_000,
    written_bytes_per_second: 2_000_000,
    written_bytes_per_day: null,
  };

  it('has its rates, and a day of writing once that is known', () => {
    expect(describeDisk(disk)).toBe('850 MB/s read, 2 MB/s written');
    expect(describeWear(disk)).toMatch(/^Only writing wears/);
    expect(describeWear({ ...disk, written_bytes_per_day: 14e9 })).toMatch(
      /^All programs together write 14 GB a day\. Only writing wears/,
    );
  });
});

describe('the picture', () => {
  it('has a row for each layer, and gaps where they fit', () => {
    const [disk, , faint, strong, below] = cells(['..09', '5...'], 40, 1);
    expect(disk).toEqual({ x: 0, y: 0, width: 9, height: 9, heat: null });
    expect([faint?.heat, strong?.heat]).toEqual([0, 1]);
    expect(below).toEqual({ x: 0, y: 10, width: 9, height: 9, heat: 5 / 9 });
  });

  it('fills whole pixels to its edges, however many experts there are', () => {
    for (const [experts, width, ratio] of [
      [512, 561, 1],
      [512, 561, 1.5],
      [7, 333, 2],
      [512, 300, 1],
    ] as const) {
      const row = cells(['3'.repeat(experts)], width, ratio);
      for (const { x, y, width: across, height } of row) {
        expect([x, y, across, height].every(Number.isInteger)).toBe(true);
        expect(Math.min(across, height)).toBeGreaterThan(0);
      }
      const last = row.at(-1);
      const gap = width / experts >= 4 ? Math.round(ratio) : 0;
      const end = (last?.x ?? 0) + (last?.width ?? 0) + gap;
      expect(Math.abs(end - width * ratio)).toBeLessThanOrEqual(1);
    }
  });

  it('shows also what is not used, and what is used often best', () => {
    const steps = Array.from({ length: 10 }, (_, digit) => opacity(digit / 9));
    expect(steps[0]).toBeGreaterThan(0.3);
    expect(steps[9]).toBe(1);
    expect(steps.toSorted((a, b) => a - b)).toEqual(steps);
    expect(new Set(steps).size).toBe(10);
  });

  it('is lower the more layers there are', () => {
    expect([0, 8, 48, 200].map(rowHeight)).toEqual([10, 10, 5, 3]);
  });
});

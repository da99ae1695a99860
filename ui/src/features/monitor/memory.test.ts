import { describe, expect, it } from 'vitest';
import type { TierStatus } from '../../platform/openapi';
import { STATUS } from '../../testing/host';
import { memoryBar, memoryText, otherBytes, plannedBytes } from './memory';

const GB = 2 ** 30;
const [fast, primary] = STATUS.tiers as [TierStatus, TierStatus];
const ram = { ...STATUS.ram, total_bytes: 16 * GB, available_bytes: 9 * GB };
const of = (tiers: TierStatus[], available = 9 * GB) =>
  memoryBar({ ram: { ...ram, available_bytes: available }, budget: STATUS.budget, tiers });
const whole = (bar: ReturnType<typeof of>) =>
  bar.others + bar.tiers.reduce((sum, { width }) => sum + width, 0);

describe('the memory bar', () => {
  it('counts used RAM that no tier holds as other apps', () => {
    expect(otherBytes({ ram, tiers: [fast, primary] })).toBe(6 * GB);
    expect(of([fast, primary]).others).toBe(6 / 16);
  });

  it('shows a tier by the lines of its plan, and its measured memory', () => {
    const [share] = of([fast, primary]).tiers;
    expect(share).toMatchObject({ id: 'primary', width: 2 / 16, held: 0.5, loaded: 1 });
    expect(share?.parts).toEqual([
      { group: 'weights', width: 1 / 2 },
      { group: 'cache', width: 1 / 4 },
      { group: 'buffers', width: 1 / 8 },
      { group: 'rest', width: 1 / 8 },
    ]);
  });

  it('marks where the budget begins', () => {
    expect(of([]).mark).toBe(4 / 16);
  });

  it('leaves out a tier that holds no memory', () => {
    expect(of([fast]).tiers).toEqual([]);
  });

  it('keeps an unloading tier until its memory is free', () => {
    const leaving: TierStatus = { ...primary, state: 'stopping' };
    expect(of([leaving]).tiers).toMatchObject([{ state: 'stopping', width: 2 / 16, held: 0.5 }]);
    expect(of([{ ...leaving, footprint_bytes: 0 }]).tiers[0]?.held).toBe(0);
    expect(of([{ ...leaving, state: 'stopped', footprint_bytes: null, plan: null }]).tiers).toEqual([]);
  });

  it('fills a loading tier by its progress', () => {
    const coming: TierStatus = { ...primary, state: 'starting', footprint_bytes: null };
    expect(of([{ ...coming, loaded_percent: null }]).tiers[0]?.loaded).toBe(0);
    expect(of([{ ...coming, loaded_percent: 40 }]).tiers[0]?.loaded).toBe(0.4);
  });

  it('leaves what stays on disk out of the sum', () => {
    const lines = [...(primary.plan?.lines ?? []), { what: 'paged_experts' as const, bytes: 40 * GB }];
    const paging: TierStatus = {
      ...primary,
      plan: { placement: 'mmap', context_tokens: 1, kind: 'generative', lines },
    };
    expect(plannedBytes(paging)).toBe(2 * GB);
    expect(of([paging]).tiers).toEqual(of([primary]).tiers);
  });

  it('shows memory over the plan, and memory without a plan', () => {
    const [over] = of([{ ...primary, footprint_bytes: 4 * GB }]).tiers;
    expect(over).toMatchObject({ width: 4 / 16, held: 1 });
    expect(over?.parts.at(-1)).toEqual({ group: 'beyond', width: 1 / 2 });
    expect(of([{ ...primary, plan: null }]).tiers[0]?.parts).toEqual([{ group: 'rest', width: 1 }]);
  });

  it('never exceeds the total: held memory first, planned memory shares the rest', () => {
    const large = (id: string): TierStatus => ({
      ...primary,
      id,
      footprint_bytes: 2 * GB,
      plan: {
        placement: 'resident',
        context_tokens: 1,
        kind: 'generative',
        lines: [{ what: 'dense_weights', bytes: 6 * GB }],
      },
    });
    // 10 of others, 4 held, and 2 left for the 8 that are planned.
    const tight = of([large('fast'), large('heavy')], 2 * GB);
    expect(tight.others).toBe(10 / 16);
    expect(tight.tiers.map(({ width }) => width)).toEqual([3 / 16, 3 / 16]);
    expect(whole(tight)).toBe(1);
    expect(tight.tiers[0]?.held).toBeCloseTo(2 / 3);
    // A footprint that is larger than the machine.
    const absurd = of([{ ...primary, footprint_bytes: 99 * GB }], 16 * GB);
    expect(whole(absurd)).toBe(1);
  });

  it('is empty without readings', () => {
    const unknown = memoryBar({
      ram: { total_bytes: 0, available_bytes: 0, pressure: 'normal' },
      budget: { total_bytes: 0, planned_bytes: 0 },
      tiers: [primary],
    });
    expect(unknown).toMatchObject({ others: 0, mark: 0, tiers: [{ width: 0, held: 0 }] });
  });
});

it('describes a tier’s memory', () => {
  expect(memoryText(primary)).toBe('1 GB used of 2 GB planned');
  expect(memoryText({ ...primary, footprint_bytes: null })).toBe('2 GB planned');
  expect(memoryText({ ...primary, plan: null })).toBe('1 GB used');
  expect(memoryText(fast)).toBeNull();
});

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { TierState, TierStatus } from '../../platform/openapi';
import { STATUS } from '../../testing/host';
import { Preload, waits } from './preload';

const [idle] = STATUS.tiers as [TierStatus];
const tier = (id: string, state: TierState, model: string | null = 'm'): TierStatus => ({
  ...idle,
  id,
  state,
  model,
});

let told: string[];
let tiers: TierStatus[];
let preload: Preload;
beforeEach(() => {
  vi.useFakeTimers();
  told = [];
  tiers = [tier('fast', 'stopped'), tier('heavy', 'stopped')];
  preload = new Preload({
    tiers: () => tiers,
    expect: async (model) => {
      told.push(model);
      throw new Error('refused');
    },
  });
});
afterEach(() => {
  vi.useRealTimers();
});

async function type(model: string) {
  preload.typed(model);
  await vi.advanceTimersByTimeAsync(1000);
}

describe('typing', () => {
  it('announces the tier once for many keys, and again after a while', async () => {
    for (let key = 0; key < 20; key += 1) {
      preload.typed('fast');
      await vi.advanceTimersByTimeAsync(100);
    }
    expect(told).toEqual([]);
    await type('fast');
    await type('fast');
    expect(told).toEqual(['fast']);
    await vi.advanceTimersByTimeAsync(20_000);
    await type('fast');
    expect(told).toEqual(['fast', 'fast']);
  });

  it('announces another tier at once', async () => {
    await type('fast');
    await type('heavy');
    expect(told).toEqual(['fast', 'heavy']);
  });

  it('announces nothing after sending or on a hidden page', async () => {
    preload.typed('fast');
    preload.done();
    await vi.advanceTimersByTimeAsync(1000);
    const hidden = vi.spyOn(document, 'hidden', 'get').mockReturnValue(true);
    await type('fast');
    expect(told).toEqual([]);
    hidden.mockReturnValue(false);
    await type('fast');
    expect(told).toEqual(['fast']);
  });

  it('announces nothing once the tier is loaded', async () => {
    preload.typed('fast');
    tiers = [tier('fast', 'ready'), tier('heavy', 'stopped')];
    await vi.advanceTimersByTimeAsync(1000);
    expect(told).toEqual([]);
  });
});

it.each<[string, TierStatus[], boolean]>([
  ['fast', [tier('fast', 'stopped')], true],
  ['fast', [tier('fast', 'stopping')], true],
  ['fast', [tier('fast', 'starting')], false],
  ['fast', [tier('fast', 'busy')], false],
  ['fast', [tier('fast', 'failed')], false],
  ['fast', [tier('fast', 'stopped', null)], false],
  ['gone', [tier('fast', 'stopped')], false],
  ['auto', [tier('fast', 'stopped'), tier('heavy', 'stopped')], true],
  ['auto', [tier('fast', 'stopped'), tier('heavy', 'ready')], false],
  ['auto', [tier('fast', 'starting'), tier('heavy', 'stopped')], false],
  ['auto', [tier('fast', 'stopped', null)], false],
  ['auto', [], false],
])('a message to %s waits for a load in case %#', (model, tiers, expected) => {
  expect(waits(model, tiers)).toBe(expected);
});

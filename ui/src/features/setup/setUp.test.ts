import { afterEach, expect, it, vi } from 'vitest';
import type { Api } from '../../lib/http';
import { verdict } from '../../testing/models';
import { SetUp } from './setUp.svelte';

const SPEED = { low: 9, high: 21, active_bytes: 1, paged_bytes: 0, measured: null, error: null };

afterEach(() => vi.useRealTimers());

it('looks once more for speeds that were not measured yet', async () => {
  vi.useFakeTimers();
  for (const [speed, looks] of [
    [null, 2],
    [SPEED, 1],
  ] as const) {
    const get = vi.fn(() => Promise.resolve({ tiers: [{ fit: verdict({ speed }) }] }));
    await new SetUp({ get } as unknown as Api).load();
    expect(get).toHaveBeenCalledTimes(1);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(get).toHaveBeenCalledTimes(looks);
  }
});

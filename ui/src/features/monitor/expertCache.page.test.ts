import { screen } from '@testing-library/svelte';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { App } from '../../lib/app';
import type { PagingStatus, Status, TierPaging, TierStatus } from '../../platform/openapi';
import { browser } from '../../testing/browser';
import { Network, refusal, STATUS, until } from '../../testing/host';
import { openSettings } from '../../testing/settings';

const ROUTE = '/tierbar/v1/paging';

let network: Network;
let app: App;

beforeEach(() => {
  vi.useFakeTimers();
  browser();
  network = new Network();
});
afterEach(() => {
  app.feed.stop();
  location.hash = '';
  vi.useRealTimers();
});

function paged(placement: TierPaging['placement']): PagingStatus {
  const tier: TierPaging = {
    tier: 'primary',
    model: 'gemma',
    placement,
    layers: ['..39', '0...'],
    held_bytes: 2 ** 30,
    all_bytes: 4 * 2 ** 30,
    hit_rate: 0.939,
    read_bytes: 12e9,
    wait_ms: 4000,
  };
  const disk = { read_bytes_per_second: 85e7, written_bytes_per_second: 2e6, written_bytes_per_day: 14e9 };
  return { tiers: [tier], disk };
}

function status(placement: TierPaging['placement']): Status {
  const [fast, primary] = STATUS.tiers as [TierStatus, TierStatus];
  const plan = { placement, context_tokens: 8192, kind: 'generative' as const, lines: [] };
  return { ...STATUS, tiers: [fast, { ...primary, plan }] };
}

async function open(first: Status) {
  app = await openSettings(network, '#monitor', first);
  await screen.findByTestId('diagnose');
}

const heading = (name: string) => screen.queryByRole('heading', { name });
const text = (testid: string) => screen.getByTestId(testid).textContent?.replace(/\s+/g, ' ').trim();

it('is neither read nor shown while all models are in memory', async () => {
  await open(STATUS);
  await vi.advanceTimersByTimeAsync(5000);
  expect(network.sent('GET', ROUTE)).toHaveLength(0);
  expect(heading('Expert Cache')).toBeNull();
});

it('shows the experts and the disk, and again every two seconds', async () => {
  network.paging = paged('cache');
  await open(status('cache'));
  await until(() => heading('Expert Cache'));
  expect(screen.getByRole('img', { name: '3 of 8 experts in memory' })).toBe(
    screen.getByTestId('experts-primary'),
  );
  for (const part of ['1 GB of 4 GB', '93 %', '12 GB', 'On disk', 'In memory', 'Used often'])
    expect(text('paging-primary')).toContain(part);
  expect(text('paging-disk')).toContain('Disk: 850 MB/s read, 2 MB/s written');
  expect(text('paging-disk')).toContain('14 GB a day');

  network.paging = { ...paged('cache'), disk: null };
  network.paging.tiers[0]?.layers.splice(0, 2, '....', '...1');
  await vi.advanceTimersByTimeAsync(2500);
  await until(() => screen.queryByRole('img', { name: '1 of 8 experts in memory' }));
  expect(screen.queryByTestId('paging-disk')).toBeNull();

  network.eventStreams[0]?.event('snapshot', STATUS);
  await until(() => heading('Expert Cache') === null);
  const reads = network.sent('GET', ROUTE).length;
  await vi.advanceTimersByTimeAsync(5000);
  expect(network.sent('GET', ROUTE)).toHaveLength(reads);
});

it('speaks of layers with a dense model', async () => {
  network.paging = paged('stream');
  await open(status('stream'));
  await until(() => heading('Layers in Memory'));
  screen.getByRole('img', { name: '1 GB of 4 GB of layers in memory' });
  expect(text('paging-primary')).not.toMatch(/expert|Used often/);
});

it('says why there is no picture', async () => {
  network.override = ({ path }) => (path === ROUTE ? refusal(500, 'internal', 'the host is unwell') : null);
  await open(status('cache'));
  await until(() => screen.queryByTestId('paging-problem'));
  expect(text('paging-problem')).toContain('The host is unwell.');
});

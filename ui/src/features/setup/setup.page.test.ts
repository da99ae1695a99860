import { fireEvent, render, screen } from '@testing-library/svelte';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type App, startApp } from '../../lib/app';
import type { SetupPlan, TierPlan, TierStatus } from '../../platform/openapi';
import { browser } from '../../testing/browser';
import { Network, STATUS, until } from '../../testing/host';
import { download, verdict } from '../../testing/models';
import Root from '../settings/Root.svelte';
import { needsSetUp } from './lacking';

let network: Network;
let app: App;
let plan: SetupPlan;

function row(tier: string, parts: Partial<TierPlan> = {}): TierPlan {
  return {
    tier,
    name: `Model of ${tier}`,
    about: 'Good for tests.',
    reference: `o/${tier}:Q4_K_M`,
    quant: 'Q4_K_M',
    size_bytes: 3_000_000_000,
    download_bytes: 3_000_000_000,
    reason: 'It fits in memory.',
    fit: verdict(),
    installed: null,
    in_use: false,
    replaces: null,
    ...parts,
  };
}

beforeEach(() => {
  browser();
  network = new Network();
  plan = {
    machine: {
      ram_bytes: 16 * 2 ** 30,
      budget_bytes: 12 * 2 ** 30,
      others_bytes: 2 ** 30,
      gpu_bytes: null,
      memory_bytes_per_second: null,
      disk_bytes_per_second: null,
      disk_free_bytes: 100_000_000_000,
    },
    tiers: [row('fast'), row('primary'), row('heavy', { installed: 'big', download_bytes: 0 })],
    download_bytes: 6_000_000_000,
    models_dir: '/data/models',
    room_bytes: 50_000_000_000,
    notes: [],
  };
  network.override = ({ path, method }) => {
    if (path === '/tierbar/v1/setup') return Response.json(plan);
    if (path === '/tierbar/v1/models') return Response.json({ models_dir: '/data/models', models: [] });
    if (path === '/tierbar/v1/catalog')
      return Response.json({ version: '1', date: '2026-01-02', refreshed: null, models: [] });
    if (path === '/tierbar/v1/config') return Response.json({ path: '', config: {} });
    if (path === '/tierbar/v1/downloads' && method === 'POST')
      return Response.json(download('x'), { status: 201 });
    return null;
  };
});
afterEach(() => {
  app.feed.stop();
  location.hash = '';
});

const tier = (id: string, model: string | null): TierStatus => ({
  ...(STATUS.tiers[0] as TierStatus),
  id,
  model,
});

async function open(tiers: TierStatus[]) {
  location.hash = '#models';
  app = startApp({
    connection: async () => ({ url: '' }),
    openSettings: async () => {},
    openChat: async () => {},
  });
  render(Root, { app });
  await until(() => network.eventStreams.length === 1);
  network.eventStreams[0]?.event('snapshot', { ...STATUS, tiers });
}

describe('the set-up', () => {
  it('downloads what is chosen in order of use, and uses what is here', async () => {
    await open([tier('fast', 'SmolLM2-135M-Instruct.Q4_1'), tier('primary', null), tier('heavy', null)]);
    const button = await screen.findByTestId('setup-start');
    expect(button.textContent).toContain('Download (6 GB)');
    await fireEvent.click(screen.getByTestId('setup-primary'));
    expect(button.textContent).toContain('Download (3 GB)');
    await fireEvent.click(button);
    await until(() => network.sent('PATCH', '/tierbar/v1/config').length === 1);
    expect(network.sent('POST', '/tierbar/v1/downloads').map(({ body }) => body)).toEqual([
      { reference: 'o/fast:Q4_K_M', tier: 'fast' },
    ]);
    expect(network.sent('PATCH', '/tierbar/v1/config')[0]?.body).toEqual({
      tiers: {
        heavy: {
          model: 'big',
          context: 'auto',
          kv_cache: 'auto',
          gpu_layers: null,
          experts_used: null,
          draft_model: '',
        },
      },
    });
  });

  it('leaves tiers alone that have a model, and does not start without room', async () => {
    plan = {
      ...plan,
      tiers: [
        row('fast', { replaces: 'mine' }),
        row('primary'),
        row('heavy', { installed: 'big', in_use: true }),
      ],
      room_bytes: 1_000_000_000,
      notes: ['Other programs use much memory.'],
    };
    await open([tier('fast', 'mine'), tier('primary', null), tier('heavy', 'big')]);
    const rows = await screen.findAllByTestId('setup-row');
    expect(rows.map((row) => row.dataset.tier)).toEqual(['primary']);
    expect(screen.getByText('Other programs use much memory.')).toBeTruthy();
    expect(screen.getByTestId('setup-lacks').textContent).toContain('room for 1 GB');
    expect(screen.getByTestId<HTMLButtonElement>('setup-start').disabled).toBe(true);
  });

  it('is offered in the chat while only the starter model is here', () => {
    expect(needsSetUp([tier('fast', 'SmolLM2-135M-Instruct.Q4_1'), tier('primary', null)])).toBe(true);
    expect(needsSetUp([tier('fast', 'gemma'), tier('primary', null)])).toBe(false);
    expect(needsSetUp([])).toBe(false);
  });
});

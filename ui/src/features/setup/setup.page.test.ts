import { fireEvent, screen } from '@testing-library/svelte';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { App } from '../../lib/app';
import type { FolderRoom, SetupPlan, TierAnswer, TierPlan, TierStatus } from '../../platform/openapi';
import { browser } from '../../testing/browser';
import { configured } from '../../testing/config';
import { Network, refusal, STATUS, until } from '../../testing/host';
import { download, verdict } from '../../testing/models';
import { openSettings } from '../../testing/settings';
import { disksOf } from './disks';
import { needsSetUp } from './lacking';

let network: Network;
let app: App;
let plan: SetupPlan;
let answers: TierAnswer[];

const OUTER: FolderRoom = {
  path: '/outer/models',
  disk: '2',
  free_bytes: 5_000_000_000,
  room_bytes: 4_000_000_000,
};

function row(tier: string, parts: Partial<TierPlan> = {}): TierPlan {
  return {
    tier,
    name: `Model of ${tier}`,
    about: 'Good for tests.',
    reference: `o/${tier}:Q4_K_M`,
    quant: 'Q4_K_M',
    size_bytes: 3_000_000_000,
    download_bytes: 3_000_000_000,
    reason: 'It fits in memory with 4 to 5 bits per weight, the usual balance of speed and quality.',
    grounds: { basis: 'balanced', measured: null, perplexity_increase: null },
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
    first: 'primary',
    download_bytes: 6_000_000_000,
    models_dir: '/data/models',
    room: { path: '/data/models', disk: '1', free_bytes: 51_000_000_000, room_bytes: 50_000_000_000 },
    notes: [],
  };
  answers = [];
  localStorage.clear();
  network.override = ({ path, method }) => {
    if (path === '/tierbar/v1/setup/answers') {
      if (method === 'DELETE') answers = [];
      if (method === 'POST') answers = [answer('fast', { state: 'asking' }), answer('primary')];
      return method === 'DELETE' ? new Response(null, { status: 204 }) : Response.json({ answers });
    }
    if (path.startsWith('/tierbar/v1/setup/folder')) {
      return path.includes('outer')
        ? Response.json(OUTER)
        : refusal(400, 'bad_request', '/gone cannot be used', 'give the full path of a folder');
    }
    if (path === '/tierbar/v1/setup') return Response.json(plan);
    if (path === '/tierbar/v1/models')
      return Response.json({ models_dir: '/data/models', disks: [], models: [] });
    if (path === '/tierbar/v1/catalog')
      return Response.json({ version: '1', date: '2026-01-02', refreshed: null, models: [] });
    if (path === '/tierbar/v1/config') return Response.json({ path: '', config: configured() });
    if (path === '/tierbar/v1/downloads' && method === 'POST')
      return Response.json(download('x'), { status: 201 });
    return null;
  };
});
afterEach(() => {
  app.feed.stop();
  location.hash = '';
});

const tier = (id: string, model: string | null, is_starter = false): TierStatus => ({
  ...(STATUS.tiers[0] as TierStatus),
  id,
  model,
  is_starter,
});

function answer(tier: string, parts: Partial<TierAnswer> = {}): TierAnswer {
  return {
    tier,
    state: 'waiting',
    model: null,
    answer: '',
    seconds: null,
    tokens_per_second: null,
    error: null,
    ...parts,
  };
}

async function open(tiers: TierStatus[]) {
  app = await openSettings(network, '#models', { ...STATUS, tiers });
}

describe('the set-up', () => {
  it('downloads what is chosen in order of use, and uses what is here', async () => {
    await open([tier('fast', 'smol', true), tier('primary', null), tier('heavy', null)]);
    expect((await screen.findByTestId('setup-where')).textContent).toContain(
      '/data/models, where 51 GB is free',
    );
    const button = await screen.findByTestId('setup-start');
    expect(button.textContent).toContain('Download (6 GB)');
    await fireEvent.click(screen.getByTestId('setup-primary'));
    expect(button.textContent).toContain('Download (3 GB)');
    await fireEvent.click(button);
    await until(() => network.sent('PATCH', '/tierbar/v1/config').length === 1);
    expect(network.sent('POST', '/tierbar/v1/downloads').map(({ body }) => body)).toEqual([
      { reference: 'o/fast:Q4_K_M', tier: 'fast', priority: 'high' },
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
          batch: null,
          paging: null,
          sampling: null,
          thinking: null,
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
      room: { path: '/data/models', disk: '1', free_bytes: 2_000_000_000, room_bytes: 1_000_000_000 },
      machine: { ...plan.machine, others_bytes: 13 * 2 ** 30 },
    };
    await open([tier('fast', 'mine'), tier('primary', null), tier('heavy', 'big')]);
    const rows = await screen.findAllByTestId('setup-row');
    expect(rows.map((row) => row.dataset.tier)).toEqual(['primary']);
    expect(screen.getByTestId('setup-crowded').textContent).toMatch(
      /^Other programs use 13 GB now, so .+ would not fit beside them\. Quit some before you use it\.$/,
    );
    expect(screen.getByTestId('setup-lacks').textContent).toContain('room for 1 GB');
    expect(screen.getByTestId<HTMLButtonElement>('setup-start').disabled).toBe(true);
  });

  it('puts a model on another disk, and counts each disk for itself', async () => {
    plan = {
      ...plan,
      room: { path: '/data/models', disk: '1', free_bytes: 5e9, room_bytes: 4_000_000_000 },
    };
    await open([tier('fast', null), tier('primary', null), tier('heavy', null)]);
    expect((await screen.findByTestId('setup-lacks')).textContent).toContain('need 6 GB');
    await fireEvent.click(screen.getByTestId('setup-folder-open-primary'));
    const path = screen.getByTestId<HTMLInputElement>('setup-folder-primary');
    await fireEvent.input(path, { target: { value: '/gone' } });
    await fireEvent.click(screen.getByTestId('setup-folder-use-primary'));
    await screen.findByText(/gone cannot be used/);
    await fireEvent.input(path, { target: { value: '/outer/models' } });
    await fireEvent.click(screen.getByTestId('setup-folder-use-primary'));
    await until(() => screen.queryByTestId('setup-lacks') === null);
    await fireEvent.click(screen.getByTestId('setup-start'));
    await until(() => network.sent('POST', '/tierbar/v1/downloads').length === 2);
    const started = network
      .sent('POST', '/tierbar/v1/downloads')
      .map(({ body }) => [body.priority, body.folder]);
    expect(started).toEqual([
      ['high', undefined],
      ['normal', '/outer/models'],
    ]);
    const both = disksOf(plan.tiers, OUTER, { fast: OUTER, primary: OUTER });
    expect(both.map(({ bytes, lacks }) => [bytes, lacks])).toEqual([[6_000_000_000, true]]);
  });

  it('has each tier answer once its model is here, also in a window opened later', async () => {
    localStorage.setItem('tierbar-setup-started', 'true');
    plan = {
      ...plan,
      tiers: [
        row('fast', { in_use: true, installed: 'a' }),
        row('primary', { in_use: true, installed: 'b' }),
      ],
    };
    await open([tier('fast', 'a'), tier('primary', 'b')]);
    await screen.findByText('Your Tiers Are Ready');
    await fireEvent.click(screen.getByTestId('setup-ask'));
    await until(() => network.sent('POST', '/tierbar/v1/setup/answers').length === 1);
    expect(network.sent('POST', '/tierbar/v1/setup/answers')[0]?.body).toEqual({
      tiers: ['fast', 'primary'],
    });
    await screen.findByTestId('setup-stop');
    answers = [
      answer('fast', {
        state: 'answered',
        model: 'a',
        answer: 'With text.',
        seconds: 3.2,
        tokens_per_second: 25,
      }),
      answer('primary', { state: 'failed', error: 'it does not fit; quit other programs' }),
    ];
    await until(() => screen.queryByTestId('setup-stop') === null);
    const [fast, primary] = screen.getAllByTestId('setup-answer');
    expect(fast?.textContent).toMatch(/With text\.\s*25\.0 tok\/s, 3\.2 s including loading/);
    expect(primary?.textContent).toContain('It does not fit; quit other programs.');
    await fireEvent.click(screen.getByTestId('setup-done'));
    await until(() => screen.queryByText('Your Tiers Are Ready') === null);
    expect(localStorage.getItem('tierbar-setup-started')).toBeNull();
    expect(answers).toEqual([]);
  });

  it('asks its tiers by itself once all have their models, and only once', async () => {
    const asks = () => network.sent('POST', '/tierbar/v1/setup/answers').map(({ body }) => body);
    plan = { ...plan, tiers: [row('fast'), row('primary'), row('heavy', { replaces: 'own' })] };
    await open([tier('fast', null), tier('primary', null), tier('heavy', 'own')]);
    await fireEvent.click(await screen.findByTestId('setup-start'));
    await until(() => network.sent('POST', '/tierbar/v1/downloads').length === 2);
    const downloads = [
      download('a', { reference: 'o/fast:Q4_K_M' }),
      download('b', { reference: 'o/primary:Q4_K_M' }),
    ];
    network.eventStreams[0]?.event('change', { downloads });
    await screen.findByTestId('setup-will-ask');

    const [fast, primary] = [
      { in_use: true, installed: 'a' },
      { in_use: true, installed: 'b' },
    ];
    const arrive = (...tiers: TierPlan[]) => {
      plan = { ...plan, tiers: [...tiers, row('heavy', { replaces: 'own' })] };
      network.eventStreams[0]?.event('change', {
        models_revision: network.sent('GET', '/tierbar/v1/setup').length + 9,
      });
    };
    arrive(row('fast', fast), row('primary'));
    await screen.findByTestId('setup-ask');
    expect(asks()).toEqual([]);
    arrive(row('fast', fast), row('primary', primary));
    await until(() => asks().length === 1);
    expect(asks()).toEqual([{ tiers: ['fast', 'primary'] }]);
    expect((await screen.findByTestId('setup-asking')).textContent).toContain('one model after another');

    await fireEvent.click(screen.getByTestId('setup-stop'));
    await screen.findByTestId('setup-ask');
    const seen = network.sent('GET', '/tierbar/v1/setup').length;
    arrive(row('fast', fast), row('primary', primary));
    await until(() => network.sent('GET', '/tierbar/v1/setup').length > seen);
    expect(asks()).toHaveLength(1);
    expect(localStorage.getItem('tierbar-setup-started')).toBe('[]');
  });

  it('asks at the end of a set-up that a closed window started', async () => {
    localStorage.setItem('tierbar-setup-started', '["fast"]');
    plan = {
      ...plan,
      tiers: [
        row('fast', { in_use: true, installed: 'a' }),
        row('primary', { in_use: true, installed: 'b' }),
      ],
    };
    await open([tier('fast', 'a'), tier('primary', 'b')]);
    await screen.findByTestId('setup-stop');
    expect(network.sent('POST', '/tierbar/v1/setup/answers').map(({ body }) => body)).toEqual([
      { tiers: ['fast'] },
    ]);
  });

  it('says which model answered if it is not the one of the plan', async () => {
    localStorage.setItem('tierbar-setup-started', 'true');
    plan = { ...plan, tiers: [row('fast', { in_use: true, installed: 'a' })] };
    answers = [answer('fast', { state: 'answered', model: 'smol', answer: 'With text.' })];
    await open([tier('fast', 'a')]);
    expect((await screen.findByTestId('setup-answer')).textContent).toContain('Answered by smol, not by a.');
  });

  it('is offered in the chat while only the starter model is here', () => {
    expect(needsSetUp([tier('fast', 'smol', true), tier('primary', null)])).toBe(true);
    expect(needsSetUp([tier('fast', 'gemma'), tier('primary', null)])).toBe(false);
    expect(needsSetUp([])).toBe(false);
  });
});

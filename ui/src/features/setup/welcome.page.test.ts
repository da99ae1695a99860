import { fireEvent, render, screen } from '@testing-library/svelte';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type App, startApp } from '../../lib/app';
import type {
  DownloadStatus,
  LibraryModel,
  SetupPlan,
  SpeedEstimate,
  TierPlan,
  TierStatus,
} from '../../platform/openapi';
import { browser } from '../../testing/browser';
import { configured } from '../../testing/config';
import { Network, refusal, type Sent, STATUS, until } from '../../testing/host';
import { account, download, localModel, refused, verdict } from '../../testing/models';
import { Chats } from '../chat/chats.svelte';
import Root from '../chat/Root.svelte';
import { modelPatch } from '../tiers/chosen';
import { lackedModel } from './lacking';

let network: Network;
let app: App;
let models: LibraryModel[];
let answer: (request: Sent) => Response | null;
const openSettings = vi.fn(async () => {});

function row(tier: string): TierPlan {
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
  };
}

const PLAN: SetupPlan = {
  machine: {
    ram_bytes: 16 * 2 ** 30,
    budget_bytes: 12 * 2 ** 30,
    others_bytes: 2 ** 30,
    gpu_bytes: null,
    memory_bytes_per_second: null,
    disk_bytes_per_second: null,
    disk_free_bytes: 100_000_000_000,
  },
  tiers: [row('fast'), row('primary'), row('heavy')],
  first: 'primary',
  download_bytes: 9_000_000_000,
  models_dir: '/data/models',
  room: null,
  notes: [],
};

beforeEach(() => {
  browser();
  openSettings.mockClear();
  network = new Network();
  models = [];
  answer = () => null;
  network.override = (request) => {
    const other = answer(request);
    if (other) return other;
    const { path, method } = request;
    if (path === '/tierbar/v1/models')
      return Response.json({ models_dir: '/data/models', disks: [], models });
    if (path === '/tierbar/v1/setup') return Response.json(PLAN);
    if (path === '/tierbar/v1/config') return Response.json({ path: '', config: configured() });
    if (path === '/tierbar/v1/downloads' && method === 'POST')
      return Response.json(download('x'), { status: 201 });
    return null;
  };
});
afterEach(() => app.feed.stop());

/** `starter`: the demo model of the first tier. `null`: every tier has its model. */
async function open(downloads: DownloadStatus[] = [], starter: string | null = '') {
  app = startApp({ connection: async () => ({ url: '' }), openSettings, openChat: async () => {} });
  render(Root, { app, chats: new Chats({ api: app.api }) });
  await until(() => network.eventStreams.length === 1);
  const tiers = STATUS.tiers.map((tier, at) => {
    if (starter === null) return tier;
    const model = at === 0 && starter !== '' ? starter : null;
    return { ...tier, model, is_starter: model !== null, state: 'stopped' };
  });
  network.eventStreams[0]?.event('snapshot', { ...STATUS, tiers, downloads });
  await screen.findByTestId('composer');
}

function now(...downloads: DownloadStatus[]) {
  network.eventStreams[0]?.event('change', { downloads });
}

const patches = () => network.sent('PATCH', '/tierbar/v1/config').map(({ body }) => body);

describe('the first model', () => {
  it('is the one for most questions, with one button', async () => {
    await open();
    expect((await screen.findByTestId('welcome-model')).textContent).toMatch(
      /Model of primary\s*Recommended\s*3 GB/,
    );
    const get = screen.getByTestId('welcome-get');
    expect(get.textContent?.trim()).toBe('Download (3 GB)');
    await fireEvent.click(get);
    await until(() => network.sent('POST', '/tierbar/v1/downloads').length === 1);
    expect(network.sent('POST', '/tierbar/v1/downloads')[0]?.body).toEqual({
      reference: 'o/primary:Q4_K_M',
      tier: 'primary',
      priority: 'high',
    });
    now(download('primary', { reference: 'o/primary:Q4_K_M' }));
    await screen.findByRole('progressbar', { name: 'Download of Model of primary' });
    expect(screen.queryByTestId('welcome-model')).toBeNull();
  });

  it('is another if the host proposes it, such as where that one is slow', async () => {
    answer = ({ path }) => (path === '/tierbar/v1/setup' ? Response.json({ ...PLAN, first: 'fast' }) : null);
    await open();
    expect((await screen.findByTestId('welcome-model')).textContent).toContain('Model of fast');
  });

  it('is said to be slow where it is', async () => {
    let high = 5.2;
    const estimate = () => ({ low: 1.7, high }) as SpeedEstimate;
    answer = ({ path }) =>
      path === '/tierbar/v1/setup'
        ? Response.json({ ...PLAN, tiers: [{ ...row('primary'), fit: verdict({ speed: estimate() }) }] })
        : null;
    await open();
    const model = await screen.findByTestId('welcome-model');
    expect(model.textContent).toContain('1.7 to 5.2 tok/s expected.');
    expect(model.textContent).not.toContain('Slow');
    high = 3.7;
    network.eventStreams[0]?.event('change', { models_revision: 1 });
    await until(() =>
      screen.getByTestId('welcome-model').textContent?.includes('3.7 tok/s expected. Slow on this computer.'),
    );
  });

  it('is not offered beside a download in progress, whatever started it', async () => {
    await open([download('other', { reference: 'o/other:Q8_0' })]);
    expect((await screen.findByTestId('welcome')).textContent).toContain('Downloading other');
    expect(screen.queryByTestId('welcome-get')).toBeNull();
  });

  it('can be an installed one, but not one broken, too large or without a chat template', async () => {
    models = [
      localModel('torn', { error: 'the file ends too early' }),
      localModel('base', { account: account({ chat_template: false }) }),
      localModel('huge', { fit: refused() }),
      localModel('found', { keeper: 'ollama' }),
    ];
    await open();
    const use = await screen.findByTestId('welcome-use');
    expect(use.textContent?.trim()).toBe('Use found');
    await fireEvent.click(use);
    await until(() => patches().length === 1);
    expect(patches()).toEqual([{ tiers: { primary: modelPatch('found') } }]);
  });

  it('can be the demo model, which is called that', async () => {
    models = [localModel('SmolLM2-135M-Instruct.Q4_1')];
    await open();
    const use = await screen.findByTestId('welcome-use');
    expect(use.textContent?.trim()).toBe('Try the Demo Model');
    await fireEvent.click(use);
    await until(() => patches().length === 1);
    expect(patches()).toEqual([{ tiers: { fast: modelPatch('SmolLM2-135M-Instruct.Q4_1') } }]);
  });

  it('shows why its download cannot start', async () => {
    answer = ({ method, path }) =>
      method === 'POST' && path.endsWith('/downloads')
        ? refusal(507, 'storage', 'the disk has 1 GB left')
        : null;
    await open();
    await fireEvent.click(await screen.findByTestId('welcome-get'));
    expect((await screen.findByTestId('error-banner')).textContent).toContain('The disk has 1 GB left.');
  });

  it('shows why its download stopped, and resumes it', async () => {
    const first = { reference: 'o/primary:Q4_K_M' };
    await open([download('first', { ...first, state: 'failed', reason: 'the hash differs' })]);
    await screen.findByText('The hash differs.');
    await fireEvent.click(screen.getByTestId('welcome-resume'));
    await until(() => network.sent('PATCH', '/tierbar/v1/downloads/first').length === 1);
    now(download('first', { ...first, state: 'waiting', reason: 'no network' }));
    await screen.findByText('No network.');
    expect(screen.queryByTestId('welcome-resume')).toBeNull();
    now(download('first', { ...first, state: 'paused' }));
    expect((await screen.findByTestId('welcome-resume')).textContent?.trim()).toBe('Resume');
  });

  it('leaves the demo model to try meanwhile', async () => {
    await open([], 'smol');
    expect((await screen.findByTestId('empty-state')).textContent).toContain('try the demo model.');
    expect(await screen.findByTestId('welcome-get')).toBeTruthy();
    expect(screen.queryByTestId('lacks-model')).toBeNull();
  });

  it('is needed before a message can be sent', async () => {
    await open();
    const composer = screen.getByTestId('composer');
    await fireEvent.input(composer, { target: { value: 'Hello?' } });
    expect((screen.getByTestId('send') as HTMLButtonElement).disabled).toBe(true);
    await fireEvent.keyDown(composer, { key: 'Enter' });
    expect(network.sent('POST', '/tierbar/v1/chats')).toEqual([]);
    const reason = screen.getByTestId('lacks-model');
    expect(reason.textContent).toContain('No model is ready to answer yet.');
    expect(composer.getAttribute('aria-describedby')).toBe(reason.id);
    await fireEvent.click(screen.getByText('Choose a Model…'));
    await fireEvent.click(screen.getByTestId('open-setup'));
    expect(openSettings.mock.calls).toEqual([['models'], ['models']]);
  });

  it('lacks only for a tier without one, while others have theirs', () => {
    const [fast, primary] = STATUS.tiers as [TierStatus, TierStatus];
    const bare = { ...fast, model: null };
    expect(lackedModel('fast', [bare, primary])).toBe('fast has no model yet.');
    expect(lackedModel('auto', [bare, primary])).toBeNull();
    expect(lackedModel('auto', [{ ...bare, engine: 'endpoint' }])).toBeNull();
  });
});

describe('the status bar', () => {
  it('shows the current download, and how many wait', async () => {
    await open([download('gemma'), download('qwen', { state: 'queued' })], null);
    const strip = screen.getByTestId('strip-download');
    expect(strip.textContent).toMatch(/Downloading gemma-Q4_K_M,\s*25 %\s*and 1 more/);
    expect(screen.queryByTestId('welcome')).toBeNull();
    now(download('gemma', { state: 'paused' }), download('qwen', { state: 'done' }));
    await until(() => screen.queryByTestId('strip-download') === null);
  });
});

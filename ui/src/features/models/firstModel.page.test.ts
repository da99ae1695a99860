import { fireEvent, render, screen } from '@testing-library/svelte';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type App, startApp } from '../../lib/app';
import type { DownloadStatus, LibraryModel } from '../../platform/openapi';
import { browser } from '../../testing/browser';
import { Network, refusal, type Sent, STATUS, until } from '../../testing/host';
import { catalogModel, download, localModel, offered, refused } from '../../testing/models';
import { Chats } from '../chat/chats.svelte';
import Root from '../chat/Root.svelte';
import { modelPatch } from '../tiers/chosen';

let network: Network;
let app: App;
let models: LibraryModel[];
let answer: (request: Sent) => Response | null;
const openSettings = vi.fn(async () => {});

const CATALOG = [
  catalogModel('Starter', {
    quants: [offered('o/starter:Q4_1', { recommended: true, size_bytes: 98_000_000 })],
  }),
  catalogModel('Quick', {
    default: true,
    tier: 'primary',
    quants: [offered('o/quick:Q4_K_M', { recommended: true, size_bytes: 3_100_000_000 })],
  }),
];

beforeEach(() => {
  browser();
  network = new Network();
  models = [];
  answer = () => null;
  network.override = (request) => {
    const other = answer(request);
    if (other) return other;
    const { path, method } = request;
    if (path === '/tierbar/v1/models') return Response.json({ models_dir: '/data/models', models });
    if (path === '/tierbar/v1/catalog') return Response.json({ version: '1', models: CATALOG });
    if (path === '/tierbar/v1/config') return Response.json({ path: '', config: {} });
    if (path === '/tierbar/v1/downloads' && method === 'POST')
      return Response.json(download('x'), { status: 201 });
    return null;
  };
});
afterEach(() => app.feed.stop());

async function open(downloads: DownloadStatus[] = [], withModel = false) {
  app = startApp({ connection: async () => ({ url: '' }), openSettings, openChat: async () => {} });
  render(Root, { app, chats: new Chats({ api: app.api, loadWithin: () => null }) });
  await until(() => network.eventStreams.length === 1);
  const tiers = STATUS.tiers.map((tier) => (withModel ? tier : { ...tier, model: null, state: 'stopped' }));
  network.eventStreams[0]?.event('snapshot', { ...STATUS, tiers, downloads });
  await screen.findByTestId('composer');
}

function now(...downloads: DownloadStatus[]) {
  network.eventStreams[0]?.event('change', { downloads });
}

const patches = () => network.sent('PATCH', '/tierbar/v1/config').map(({ body }) => body);

describe('a first model', () => {
  it('is a default or the smallest, and is assigned to its tier', async () => {
    await open();
    const buttons = await screen.findAllByTestId('starter-get');
    expect(buttons.map((button) => button.textContent?.trim())).toEqual([
      'Download Quick (3.1 GB)',
      'Download Starter (98 MB)',
    ]);
    await fireEvent.click(buttons[0] as HTMLElement);
    await until(() => network.sent('POST', '/tierbar/v1/downloads').length === 1);
    expect(network.sent('POST', '/tierbar/v1/downloads')[0]?.body).toEqual({ reference: 'o/quick:Q4_K_M' });
    now(download('quick', { reference: 'o/quick:Q4_K_M' }));
    await screen.findByRole('progressbar', { name: 'Download of the first model' });
    expect(screen.getByTestId('starter').textContent).toContain('Downloading Quick');
    expect(patches()).toEqual([]);
    models = [localModel('quick-Q4_K_M', { reference: 'o/quick:Q4_K_M' })];
    now(download('quick', { reference: 'o/quick:Q4_K_M', state: 'done' }));
    await until(() => patches().length === 1);
    expect(patches()).toEqual([{ tiers: { primary: modelPatch('quick-Q4_K_M') } }]);
  });

  it('can be an installed one, but not one broken or too large', async () => {
    models = [
      localModel('torn', { error: 'the file ends too early' }),
      localModel('huge', { fit: refused() }),
      localModel('found', { keeper: 'ollama' }),
    ];
    await open();
    const use = await screen.findByTestId('starter-use');
    expect(use.textContent?.trim()).toBe('Use found');
    expect(screen.queryByTestId('starter-get')).toBeNull();
    await fireEvent.click(use);
    await until(() => patches().length === 1);
    expect(patches()).toEqual([{ tiers: { fast: modelPatch('found') } }]);
  });

  it('shows why its download cannot start', async () => {
    answer = ({ method, path }) =>
      method === 'POST' && path.endsWith('/downloads')
        ? refusal(507, 'storage', 'the disk has 1 GB left')
        : null;
    await open();
    await fireEvent.click((await screen.findAllByTestId('starter-get'))[0] as HTMLElement);
    expect((await screen.findByTestId('error-banner')).textContent).toContain('The disk has 1 GB left.');
  });

  it('shows why its download stopped, and can be resumed or replaced', async () => {
    const quick = { reference: 'o/quick:Q4_K_M' };
    await open([download('quick', { ...quick, state: 'failed', reason: 'the hash differs' })]);
    await screen.findByText('The hash differs.');
    expect(screen.getByTestId('starter').textContent).toContain('Not downloaded yet: Quick');
    expect((await screen.findByTestId('starter-get')).textContent).toContain('Download Starter');
    await fireEvent.click(screen.getByTestId('starter-resume'));
    await until(() => network.sent('PATCH', '/tierbar/v1/downloads/quick').length === 1);
    now(download('quick', { ...quick, state: 'waiting', reason: 'no network' }));
    await screen.findByText('No network.');
    expect(screen.queryByTestId('starter-resume')).toBeNull();
    expect(screen.queryByTestId('starter-get')).toBeNull();
    now(download('quick', { ...quick, state: 'paused' }));
    expect((await screen.findByTestId('starter-resume')).textContent?.trim()).toBe('Resume');
  });

  it('can be chosen among all models in the settings', async () => {
    await open();
    await fireEvent.click(screen.getByTestId('starter-models'));
    await fireEvent.click(screen.getByTestId('open-models'));
    expect(openSettings.mock.calls).toEqual([['models'], ['models']]);
  });
});

describe('the status bar', () => {
  it('shows the current download, and how many wait', async () => {
    await open([download('gemma'), download('qwen', { state: 'queued' })], true);
    const strip = screen.getByTestId('strip-download');
    expect(strip.textContent).toMatch(/Downloading gemma-Q4_K_M,\s*25 %\s*and 1 more/);
    expect(screen.queryByTestId('starter')).toBeNull();
    now(download('gemma', { state: 'paused' }), download('qwen', { state: 'done' }));
    await until(() => screen.queryByTestId('strip-download') === null);
  });
});

import { fireEvent, screen, waitFor, within } from '@testing-library/svelte';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { App } from '../../lib/app';
import type { CatalogModel, DownloadStatus, LibraryModel, ModelDisk } from '../../platform/openapi';
import { browser } from '../../testing/browser';
import { configured, TIER } from '../../testing/config';
import { Network, refusal, type Sent, STATUS, until } from '../../testing/host';
import {
  account,
  catalogModel,
  download,
  GIB,
  localModel,
  offered,
  refused,
  verdict,
} from '../../testing/models';
import { openSettings } from '../../testing/settings';
import { modelPatch } from '../tiers/chosen';
import { describeMark } from './acting';

let network: Network;
let app: App;
let models: LibraryModel[];
let disks: ModelDisk[];
let catalog: CatalogModel[];
let downloads: DownloadStatus[];
let refreshed: string | null;
let answer: (request: Sent) => Response | null;

function host(request: Sent): Response | null {
  const { method, path } = request;
  const other = answer(request);
  if (other) return other;
  if (path === '/tierbar/v1/models') return Response.json({ models_dir: '/data/models', disks, models });
  if (path === '/tierbar/v1/catalog')
    return Response.json({ version: '1', date: '2026-11-26', refreshed, models: catalog });
  if (path === '/tierbar/v1/setup/answers') return Response.json({ answers: [] });
  if (path === '/tierbar/v1/config')
    return Response.json({ path: '/data/config.toml', config: configured() });
  if (path.startsWith('/tierbar/v1/downloads')) {
    if (method === 'DELETE') return new Response(null, { status: 204 });
    return Response.json(download('x'), { status: method === 'POST' ? 201 : 200 });
  }
  return null;
}

beforeEach(() => {
  browser();
  network = new Network();
  network.override = host;
  answer = () => null;
  models = [];
  disks = [];
  catalog = [];
  downloads = [];
  refreshed = null;
});
afterEach(() => {
  app.feed.stop();
  location.hash = '';
});

async function start(hash: string) {
  app = await openSettings(network, hash, { ...STATUS, downloads });
}

async function open() {
  await start('#models');
  await screen.findByTestId('find');
  await until(() => screen.queryByTestId('add-folder'));
}

/** Opens the page of one model. */
async function openPage(id: string): Promise<HTMLElement> {
  await start(`#models/${id}`);
  return await screen.findByTestId('model-page');
}

function now(...list: DownloadStatus[]) {
  network.eventStreams[0]?.event('change', { downloads: list });
}

const offer = (name: string) =>
  screen.getAllByTestId('offer').find((one) => one.dataset.name === name) as HTMLElement;
const local = (id: string) =>
  screen.getAllByTestId('local-model').find((one) => one.dataset.model === id) as HTMLElement;
const bodies = (method: string, path: string) => network.sent(method, path).map(({ body }) => body);

describe('images and sound', () => {
  const projector = {
    file: 'mmproj-BF16.gguf',
    size_bytes: 1_000_000_000,
    input_modalities: ['text', 'image', 'audio'] as const,
  };
  const offerOf = { ...projector, input_modalities: [...projector.input_modalities] };

  it('come with a model, and can be left out', async () => {
    catalog = [catalogModel('Gemma', { projector: offerOf })];
    await openPage('gemma');
    const box = await screen.findByTestId<HTMLInputElement>('offer-media');
    expect(box.checked).toBe(true);
    expect(box.closest('label')?.textContent?.replaceAll('\u00a0', ' ').trim()).toBe(
      'Include images and sound (adds 1 GB, 6 GB in total)',
    );
    await fireEvent.click(screen.getByTestId('offer-get'));
    await until(() => bodies('POST', '/tierbar/v1/downloads').length === 1);
    await fireEvent.click(box);
    await fireEvent.click(screen.getByTestId('offer-get'));
    await until(() => bodies('POST', '/tierbar/v1/downloads').length === 2);
    const reference = 'o/Gemma-GGUF:Q4_K_M';
    expect(bodies('POST', '/tierbar/v1/downloads')).toEqual([{ reference }, { reference, include: 'model' }]);
  });

  it('are added to an installed model with one button', async () => {
    const projector_error = 'mmproj.gguf is incomplete (5 of 10 bytes)';
    models = [
      localModel('gemma', { reference: 'o/Gemma:Q4', projector_offer: offerOf, projector_error }),
      localModel('seeing', { projector: '/mmproj.gguf', input_modalities: ['text', 'image'] }),
    ];
    await open();
    const row = await waitFor(() => local('gemma'));
    expect(within(row).getByTestId('projector-error').textContent).toBe(
      `Accepts only text: ${projector_error}.`,
    );
    const button = within(row).getByTestId('add-media');
    expect(button.textContent?.trim()).toBe('Add Images and Sound (1 GB)');
    await fireEvent.click(button);
    await until(() => bodies('POST', '/tierbar/v1/downloads').length === 1);
    expect(bodies('POST', '/tierbar/v1/downloads')).toEqual([{ reference: 'gemma', include: 'projector' }]);
    expect(local('seeing').textContent).toContain('takes images');
    expect(within(local('seeing')).queryByTestId('add-media')).toBeNull();
  });
});

describe('downloads', () => {
  it('show their progress, on screen and to screen readers', async () => {
    downloads = [download('gemma')];
    await open();
    const bar = screen.getByRole('progressbar', { name: 'Download of gemma-Q4_K_M' });
    expect(bar.getAttribute('aria-valuenow')).toBe('25');
    expect(bar.getAttribute('aria-valuetext')).toContain('1 GB of 4 GB');
    now(download('gemma', { received_bytes: 3_000_000_000, warnings: ['the disk will be 83 % full'] }));
    await until(() => bar.getAttribute('aria-valuenow') === '75');
    expect(screen.getByTestId('download').textContent).toContain('The disk will be 83 % full.');
    now(download('gemma', { total_bytes: null }));
    await until(() => !bar.hasAttribute('aria-valuenow'));
    // Warnings do not matter once it is done.
    now(download('gemma', { state: 'done', warnings: ['the disk will be 83 % full'] }));
    await screen.findByText(/Downloaded and verified/);
    expect(screen.getByTestId('download').textContent).not.toContain('83 % full');
  });

  it('are paused, resumed, retried and prioritized', async () => {
    downloads = [download('gemma'), download('qwen', { state: 'queued' })];
    await open();
    await fireEvent.click(screen.getByRole('button', { name: 'Pause gemma-Q4_K_M' }));
    await fireEvent.click(screen.getByRole('button', { name: 'Prioritize qwen-Q4_K_M' }));
    now(
      download('gemma', { state: 'paused' }),
      download('qwen', { state: 'failed', reason: 'the hash differs' }),
    );
    await fireEvent.click(await screen.findByRole('button', { name: 'Resume gemma-Q4_K_M' }));
    expect(screen.getByRole('alert').textContent).toBe('The hash differs.');
    await fireEvent.click(screen.getByRole('button', { name: 'Try Again qwen-Q4_K_M' }));
    await until(() => bodies('PATCH', '/tierbar/v1/downloads/qwen').length === 2);
    expect(bodies('PATCH', '/tierbar/v1/downloads/gemma')).toEqual([
      { state: 'paused' },
      { state: 'queued' },
    ]);
    expect(bodies('PATCH', '/tierbar/v1/downloads/qwen')).toEqual([
      { priority: 'high' },
      { state: 'queued' },
    ]);
  });

  it('have no priority while there is only one', async () => {
    downloads = [download('gemma')];
    await open();
    expect(screen.queryByTestId('download-first')).toBeNull();
  });

  it('are canceled after confirmation; a finished one is just cleared', async () => {
    downloads = [download('gemma'), download('smol', { state: 'done' })];
    await open();
    await fireEvent.click(screen.getByRole('button', { name: 'Cancel gemma-Q4_K_M' }));
    expect(network.sent('DELETE', '/tierbar/v1/downloads/gemma')).toHaveLength(0);
    expect(screen.getByRole('dialog').textContent).toContain('The 1 GB downloaded so far will be deleted.');
    await fireEvent.click(screen.getByTestId('confirm'));
    await fireEvent.click(screen.getByRole('button', { name: 'Clear smol-Q4_K_M' }));
    await until(() => network.sent('DELETE', '/tierbar/v1/downloads/smol').length === 1);
    expect(network.sent('DELETE', '/tierbar/v1/downloads/gemma')).toHaveLength(1);
  });

  it('show why the host refused a change', async () => {
    downloads = [download('gemma')];
    answer = ({ method }) =>
      method === 'PATCH' ? refusal(404, 'not_found', 'there is no such download') : null;
    await open();
    await fireEvent.click(screen.getByTestId('download-pause'));
    expect((await screen.findByRole('alert')).textContent).toBe('There is no such download.');
  });

  it('refresh the lists of models when they finish', async () => {
    downloads = [download('gemma')];
    await open();
    expect(screen.getByTestId('library-empty').textContent).toContain('/data/models');
    models = [localModel('gemma-Q4_K_M')];
    now(download('gemma', { state: 'done' }));
    await until(() => screen.queryByTestId('local-model'));
  });
});

describe('installed models', () => {
  it('appear and disappear as the host reports', async () => {
    models = [localModel('gone')];
    await open();
    await until(() => screen.queryAllByTestId('local-model').length === 1);
    models = [localModel('one'), localModel('two')];
    network.eventStreams[0]?.event('change', { models_revision: 1 });
    await until(() => screen.queryAllByTestId('local-model').length === 2);
    expect(screen.queryByText('gone')).toBeNull();
  });

  it('show what they are for, size, keeper and fit, and the plan on a click', async () => {
    models = [
      localModel('smol', {
        keeper: 'lm_studio',
        tiers: ['fast'],
        fit: verdict({
          estimated: true,
          gpu: { layers: 20, layers_all: 30, bytes: 2 * GIB, limit_bytes: 10.5 * GIB, without_experts: true },
          speed: { low: 20, high: 30, active_bytes: 1, paged_bytes: 0, measured: 16, error: -0.2 },
          paging_speeds: [{ paging: 'advise', low: 8, high: 12 }],
        }),
      }),
    ];
    await open();
    const row = local('smol');
    expect(row.textContent).toMatch(/smol.*Fast.*LM Studio.*Chat\..*Tight · 98 MB.*8K context/s);
    expect(row.textContent).not.toContain('Q4_1');
    const chip = within(row).getByTestId('fit-chip');
    expect(chip.getAttribute('aria-label')).toBe('Tight · 98 MB. Memory details of smol');
    expect(chip.getAttribute('aria-expanded')).toBe('false');
    await fireEvent.click(chip);
    expect(document.getElementById(chip.getAttribute('aria-controls') ?? '')).toBe(
      within(row).getByTestId('fit-details'),
    );
    const cells = within(row)
      .getAllByRole('row')
      .map((line) => [...line.children].map((cell) => cell.textContent));
    expect(cells).toEqual([
      ['Memory', 'GB'],
      ['Weights', '2.50'],
      ['KV cache', '0.75'],
      ['Tierbar', '0.25'],
      ['Total', '3.50'],
      ['Budget for models, of 16 GB', '12.00'],
    ]);
    const text = within(row).getByTestId('fit-details').textContent;
    expect(text).toContain('20 of 30 layers without their experts, 2.00 of 10.50 GB');
    expect(text).toContain('20 to 30 tok/s');
    expect(text).toContain('With experts read ahead 8.0 to 12 tok/s');
    expect(text).toContain('16.0 tok/s, 20 % slower than expected');
    expect(text).toContain('Largest context 65,536 tokens');
  });

  it('are assigned to a tier', async () => {
    models = [localModel('gemma', { tiers: ['primary'] })];
    answer = ({ method }) => {
      if (method === 'PATCH') models = [localModel('gemma', { tiers: ['fast', 'primary'] })];
      return null;
    };
    await open();
    await fireEvent.click(screen.getByRole('button', { name: 'Use gemma in a tier' }));
    expect(screen.getByTestId('use-primary').getAttribute('aria-checked')).toBe('true');
    await fireEvent.click(screen.getByTestId('use-fast'));
    await until(() => bodies('PATCH', '/tierbar/v1/config').length === 1);
    expect(bodies('PATCH', '/tierbar/v1/config')).toEqual([{ tiers: { fast: modelPatch('gemma') } }]);
    expect(screen.queryByRole('menu')).toBeNull();
    await until(() => local('gemma').textContent?.includes('Fast'));
  });

  it('name what a tier loses by a new model, and bring it back', async () => {
    const own = configured({ tiers: { fast: { ...TIER, model: 'smol', context: 4096, thinking: true } } });
    models = [localModel('gemma')];
    answer = ({ method, path, body }) => {
      if (path !== '/tierbar/v1/config') return null;
      if (method === 'PATCH')
        models = [localModel('gemma', { tiers: body.tiers.fast.model === 'gemma' ? ['fast'] : [] })];
      return Response.json({ path: '', config: own });
    };
    await open();
    await fireEvent.click(within(local('gemma')).getByTestId('model-use'));
    await fireEvent.click(screen.getByTestId('use-fast'));
    const notice = await within(local('gemma')).findByTestId('reset-fast');
    expect(notice.textContent).toContain('these settings are back to their defaults: Context, Think first.');
    await fireEvent.click(screen.getByTestId('reset-undo-fast'));
    await until(() => screen.queryByTestId('reset-fast') === null);
    expect(bodies('PATCH', '/tierbar/v1/config')[1]).toEqual({
      tiers: { fast: { ...modelPatch('smol'), context: 4096, thinking: true } },
    });
  });

  it('show why a tier cannot use them', async () => {
    models = [localModel('gemma'), localModel('smol')];
    answer = ({ method }) => (method === 'PATCH' ? refusal(400, 'config_invalid', 'it does not fit') : null);
    await open();
    await fireEvent.click(within(local('smol')).getByTestId('model-use'));
    await fireEvent.click(screen.getByTestId('use-fast'));
    expect((await within(local('smol')).findByRole('alert')).textContent).toBe('It does not fit.');
    expect(within(local('gemma')).queryByRole('alert')).toBeNull();
  });

  it.each([
    ['embedding', 'embedder', 'Use as Embedder', 'Stop Using as Embedder'],
    ['reranking', 'reranker', 'Use as Reranker', 'Stop Using as Reranker'],
  ] as const)('for %s are used with one click, and no longer with another', async (kind, tier, use, stop) => {
    const model = (tiers: string[]) =>
      localModel('nomic', {
        account: account({ kind }),
        tiers,
        fit: verdict({
          lines: [{ what: 'dense_weights', bytes: 251 * 2 ** 20 }],
          total_bytes: 251 * 2 ** 20,
        }),
      });
    models = [model([])];
    await open();
    const button = () => within(local('nomic')).getByTestId('model-slot');
    expect(within(local('nomic')).queryByTestId('model-use')).toBeNull();
    expect(button().textContent).toBe(use);
    expect(local('nomic').textContent).toContain('Loads beside a chat model: it needs 251 MB.');
    models = [model([tier])];
    await fireEvent.click(button());
    await until(() => button().textContent === stop);
    await fireEvent.click(button());
    await until(() => bodies('PATCH', '/tierbar/v1/config').length === 2);
    expect(bodies('PATCH', '/tierbar/v1/config')).toEqual([
      { tiers: { [tier]: modelPatch('nomic') } },
      { tiers: { [tier]: { model: '' } } },
    ]);
  });

  it('move to the Trash after confirmation', async () => {
    models = [localModel('gemma', { tiers: ['fast'] })];
    answer = ({ method }) => {
      if (method !== 'DELETE') return null;
      models = [];
      return Response.json({ trashed: true });
    };
    await open();
    await fireEvent.click(screen.getByRole('button', { name: 'Actions for gemma' }));
    await fireEvent.click(screen.getByTestId('model-remove'));
    expect(screen.getByRole('dialog').textContent).toContain('Left without a model: Fast.');
    expect(network.sent('DELETE', '/tierbar/v1/models/gemma')).toHaveLength(0);
    await fireEvent.click(screen.getByTestId('confirm'));
    await screen.findByTestId('library-empty');
    expect(network.sent('DELETE', '/tierbar/v1/models/gemma')).toHaveLength(1);
  });

  it('are deleted permanently after a second confirmation, without a Trash', async () => {
    models = [localModel('gemma')];
    answer = ({ method, path }) => {
      if (method !== 'DELETE') return null;
      if (!path.endsWith('?permanently=true')) return refusal(507, 'storage', 'its volume has no Trash');
      models = [];
      return Response.json({ trashed: false });
    };
    await open();
    await fireEvent.click(screen.getByTestId('model-more'));
    await fireEvent.click(screen.getByTestId('model-remove'));
    await fireEvent.click(screen.getByTestId('confirm'));
    await fireEvent.click(await screen.findByTestId('model-delete'));
    expect(screen.getByRole('dialog').textContent).toContain('Delete “gemma” permanently?');
    await fireEvent.click(screen.getByTestId('confirm'));
    await screen.findByTestId('library-empty');
  });

  it.each([
    ['of another app', { keeper: 'ollama' as const }, 'Managed by Ollama'],
    ['of an added folder', { keeper: 'folder' as const }, 'a folder that you added'],
    ['loaded in a tier', { tiers: ['primary'] }, 'Loaded in Everyday'],
  ])('%s cannot be removed, with the reason', async (_name, parts, why) => {
    models = [localModel('gemma', parts)];
    await open();
    await fireEvent.click(screen.getByTestId('model-more'));
    const remove = screen.getByTestId('model-remove');
    expect(remove.textContent).toContain(why);
    await fireEvent.click(remove);
    expect(screen.queryByRole('dialog')).toBeNull();
  });

  it('show why a broken one is unusable', async () => {
    models = [localModel('torn', { account: null, fit: null, error: 'the file ends too early' })];
    await open();
    expect(screen.getByTestId('model-error').textContent).toBe('The file ends too early.');
    expect(screen.queryByTestId('model-use')).toBeNull();
  });

  it('come from an added folder, or it shows why not', async () => {
    await open();
    answer = ({ path }) =>
      path.endsWith('/import')
        ? refusal(400, 'bad_request', 'there is no folder ~/nowhere', 'check its name')
        : null;
    await fireEvent.input(screen.getByTestId('add-folder-path'), { target: { value: ' ~/nowhere ' } });
    await fireEvent.click(screen.getByTestId('add-folder'));
    await until(() =>
      screen
        .getByTestId('add-folder-outcome')
        .textContent?.includes('There is no folder ~/nowhere. Check its name.'),
    );
    models = [localModel('found', { keeper: 'folder' })];
    answer = ({ path }) => (path.endsWith('/import') ? Response.json({ models }) : null);
    await fireEvent.click(screen.getByTestId('add-folder'));
    await until(() => screen.queryByTestId('local-model'));
    expect(screen.getByTestId('add-folder-outcome').textContent).toContain('1 model found.');
    expect(bodies('POST', '/tierbar/v1/models/import')[1]).toEqual({ path: '~/nowhere' });
  });
});

describe('available models', () => {
  it('show warnings before the download', async () => {
    catalog = [
      catalogModel('Slow', {
        quants: [
          offered('o/slow:Q4', {
            fit: verdict({ cautions: [{ kind: 'weights_on_disk', disk_bytes: 2.5 * GIB }] }),
          }),
        ],
      }),
    ];
    await open();
    await screen.findByText(
      '2.5 GB of its weights are read from the disk for every token, so answers are very slow.',
    );
  });

  it('show what stays on disk beside the total, not in it', async () => {
    const lines = [
      { what: 'dense_weights' as const, bytes: 11 * GIB },
      { what: 'paged_weights' as const, bytes: 3 * GIB },
    ];
    catalog = [
      catalogModel('Paged', {
        quants: [offered('o/p:Q4', { fit: verdict({ placement: 'mmap', lines, total_bytes: 11 * GIB }) })],
      }),
    ];
    await open();
    await fireEvent.click(await screen.findByTestId('fit-chip'));
    expect(screen.getByRole('row', { name: 'Weights on disk 3.00' })).toBeTruthy();
    expect(screen.getByRole('row', { name: 'Total in memory 11.00' })).toBeTruthy();
    const [memory, disk] = screen.getByRole('img').children as unknown as HTMLElement[];
    expect([memory?.style.width, disk?.style.width].map((width) => Number.parseFloat(width ?? ''))).toEqual([
      expect.closeTo(78.57),
      expect.closeTo(21.43),
    ]);
  });

  const big = () =>
    catalogModel('Big', {
      tier: 'heavy',
      default: true,
      repository: 'o/big-GGUF',
      quants: [
        offered('o/big-GGUF:Q4_K_M', { fit: refused() }),
        offered('o/big-GGUF:Q2_K', {
          recommended: true,
          fit: verdict({ placement: 'mmap', estimated: true }),
        }),
      ],
    });

  it('are grouped by tier, preselect the recommended quant, and download', async () => {
    catalog = [catalogModel('Starter'), big()];
    await open();
    await until(() => screen.queryAllByTestId('offer').length === 2);
    expect(screen.getAllByRole('heading', { level: 2 }).map((title) => title.textContent)).toEqual([
      'On This Computer',
      'Saved Contexts',
      'Find a Model',
      'Recommended Models',
      'Small Models to Try',
      'Deep: Hard Questions',
    ]);
    const row = offer('Big');
    expect(row.textContent).toMatch(/Good at something\..*Reads from disk · 5 GB.*Text · 8K context/s);
    expect(row.textContent).not.toContain('Q2_K');
    expect(within(offer('Starter')).getByTestId('fit-chip').textContent?.trim()).toBe('Fits · 5 GB');
    await fireEvent.click(within(row).getByRole('button', { name: 'Download Big Q2_K' }));
    await until(() => bodies('POST', '/tierbar/v1/downloads').length === 1);
    expect(bodies('POST', '/tierbar/v1/downloads')).toEqual([{ reference: 'o/big-GGUF:Q2_K' }]);
    now(download('big', { reference: 'o/big-GGUF:Q2_K' }));
    await until(() => within(row).queryByTestId('offer-progress'));
    expect(within(row).getByTestId('offer-progress').textContent).toMatch(/Downloading\s+25 %/);
    expect(within(row).queryByTestId('offer-get')).toBeNull();
  });

  it('show why one is too large, an alternative, and ask first', async () => {
    catalog = [big()];
    await openPage('big');
    const quant = await screen.findByTestId<HTMLSelectElement>('offer-quant');
    await fireEvent.change(quant, { target: { value: 'o/big-GGUF:Q4_K_M' } });
    expect(screen.getByTestId('offer-why').textContent).toContain(
      'Does not fit this computer: with a context of 4,096 tokens it needs 20 GB, and the budget is 12 GB.',
    );
    await fireEvent.click(screen.getByTestId('offer-get'));
    expect(bodies('POST', '/tierbar/v1/downloads')).toEqual([]);
    expect(screen.getByRole('dialog').textContent).toContain('it needs 20 GB');
    await fireEvent.click(screen.getByTestId('confirm'));
    await until(() => bodies('POST', '/tierbar/v1/downloads').length === 1);
    expect(bodies('POST', '/tierbar/v1/downloads')).toEqual([
      { reference: 'o/big-GGUF:Q4_K_M', anyway: true },
    ]);
    await fireEvent.click(screen.getByTestId('take-instead'));
    expect(quant.value).toBe('o/big-GGUF:Q2_K');
  });

  it('download a refused one anyway after confirmation', async () => {
    catalog = [catalogModel('Odd', { quants: [offered('o/odd:Q4', { fit: null })] })];
    answer = ({ method, body }) =>
      method === 'POST' && !body.anyway
        ? refusal(503, 'over_budget', 'it needs 20 GiB', 'take o/odd:Q2 instead')
        : null;
    await open();
    await fireEvent.click(await screen.findByTestId('offer-get'));
    expect((await screen.findByTestId('error-banner')).textContent).toMatch(
      /It needs 20 GB\..*Take o\/odd:Q2 instead\./,
    );
    await fireEvent.click(screen.getByTestId('offer-get'));
    await fireEvent.click(screen.getByTestId('confirm'));
    await until(() => bodies('POST', '/tierbar/v1/downloads').length === 2);
    expect(bodies('POST', '/tierbar/v1/downloads')[1]).toEqual({ reference: 'o/odd:Q4', anyway: true });
    await until(() => screen.queryByTestId('error-banner') === null);
  });

  it('do not offer “anyway” when the disk is full', async () => {
    catalog = [catalogModel('Odd')];
    answer = ({ method }) => (method === 'POST' ? refusal(507, 'storage', 'the disk has 1 GB left') : null);
    await open();
    await fireEvent.click(await screen.findByTestId('offer-get'));
    await screen.findByTestId('error-banner');
    expect(screen.getByTestId('offer-get').textContent?.trim()).toBe('Download');
  });

  it('say what they are trusted with, if they were examined', async () => {
    const file = {
      version: '0.1.0',
      taken_at: '2026-11-26T20:00:00Z',
      model: 'smol',
      size_bytes: 1,
      modified: null,
      sha256: null,
      first_steps: null,
    };
    const triage = {
      ...file,
      judgment: 'triage' as const,
      right: 7,
      of: 16,
      passed: false,
      milliseconds: 400,
    };
    const routing = {
      ...file,
      judgment: 'routing' as const,
      right: 10,
      of: 12,
      passed: true,
      milliseconds: null,
    };
    const slow = { ...triage, right: 15, passed: true, milliseconds: 1420 };
    expect(describeMark(slow)).toBe('Off in chains: 1.4 s for a message (15 of 16 correct).');
    const score = (right: number) => ({ right, milliseconds: 1000 });
    const agent = {
      ...routing,
      judgment: 'agent' as const,
      right: 11,
      first_steps: { thinking: false, calls: score(11), text: score(9) },
    };
    const thinking = { ...agent, first_steps: { thinking: true, calls: score(3), text: score(9) } };
    const summaries = { ...routing, judgment: 'summaries' as const, right: 2, of: 6, passed: false };
    const citations = { ...summaries, judgment: 'citations' as const, right: 5, passed: true };
    models = [localModel('smol', { marks: [triage, routing, summaries, citations, agent, thinking] })];
    const page = await openPage('smol');
    const shown = within(page).getAllByTestId('model-mark');
    expect(shown.map(({ textContent }) => textContent)).toEqual([
      'TriageOff: 7 of 16 correct. A rule stands in.',
      'AutoOn: 10 of 12 correct.',
      'SummariesOff: 2 of 6 correct. A rule stands in.',
      'CitationsOn: 5 of 6 correct.',
      'As an agentUses tool calls (11 of 12 correct; text commands: 9).',
      'As an agent that thinksUses text commands (9 of 12 correct; tool calls: 3).',
    ]);
  });

  it('say what they can do, and keep published figures apart', async () => {
    catalog = [
      catalogModel('Known', {
        capabilities: { inputs: ['text', 'image'], thinking: true, tools: true },
        context_train: 262144,
        speeds: [
          {
            chip: 'Apple M4',
            ram_gb: 16,
            tokens_per_second: 20.87,
            quant: 'Q4_K_M',
            engine: 'llama.cpp',
            source: 'https://github.com/a/b/issues/3',
          },
        ],
        scores: [{ benchmark: 'MMLU-Pro', score: 48.3, source: 'https://huggingface.co/a/b' }],
        quants: [offered('o/known:Q4', { recommended: true }), offered('o/known:Q8', { sha256: 'ab' })],
      }),
    ];
    const page = await openPage('known');
    expect(within(page).getByTestId('model-facts').textContent).toMatch(
      /Input.*Text and images.*Thinks before it answers, calls tools.*256K tokens.*Apache-2\.0.*o\/Known-GGUF/s,
    );
    const figures = within(screen.getByTestId('published'));
    expect(
      figures.getByRole('row', { name: 'Apple M4, 16 GB Q4_K_M, llama.cpp 20.9 tok/s github.com' }),
    ).toBeTruthy();
    expect(figures.getByRole('row', { name: 'MMLU-Pro 48.3 % huggingface.co' })).toBeTruthy();
    const link = figures.getByRole<HTMLAnchorElement>('link', { name: 'github.com' });
    expect([link.href, link.target]).toEqual(['https://github.com/a/b/issues/3', '_blank']);
    expect(screen.getByTestId('checksum').textContent).toContain('The list has no checksum of Q4.');
    await fireEvent.change(screen.getByTestId('offer-quant'), { target: { value: 'o/known:Q8' } });
    expect(screen.getByTestId('checksum').textContent).toContain('The checksum of Q8 is known.');
  });

  it('are updated from the hub only on request', async () => {
    catalog = [catalogModel('Starter'), catalogModel('Gone')];
    answer = ({ path }) => {
      if (path !== '/tierbar/v1/catalog/refresh') return null;
      refreshed = '2027-01-02T03:04:05Z';
      const failed = [
        { id: 'gone', name: 'Gone', repository: 'o/gone', reason: 'the hub has no repository o/gone' },
      ];
      return Response.json({ refreshed, updated: ['starter'], failed });
    };
    await open();
    expect((await screen.findByTestId('catalog-date')).textContent).toBe('List of 2026-11-26');
    expect(bodies('POST', '/tierbar/v1/catalog/refresh')).toHaveLength(0);
    await fireEvent.click(screen.getByRole('button', { name: 'Update List' }));
    await until(() => screen.getByTestId('catalog-date').textContent?.includes('2027-01-02'));
    expect(screen.getByTestId('catalog-date').textContent).toBe(
      'List of 2026-11-26, files updated on 2027-01-02',
    );
    expect(screen.getByTestId('catalog-outcome').textContent).toMatch(
      /Updated 1 of 2 models\..*Gone was not updated\. The hub has no repository o\/gone\./s,
    );
  });

  it('say why none could be updated', async () => {
    catalog = [catalogModel('Starter')];
    answer = ({ path }) =>
      path === '/tierbar/v1/catalog/refresh'
        ? refusal(502, 'unreachable', 'the hub cannot be reached')
        : null;
    await open();
    await fireEvent.click(await screen.findByTestId('catalog-refresh'));
    await until(() => screen.getByTestId('catalog-outcome').textContent?.includes('cannot be reached'));
    expect(screen.getByTestId('catalog-refresh').textContent?.trim()).toBe('Update List');
  });

  it('do not offer an installed one again', async () => {
    catalog = [catalogModel('Here', { quants: [offered('o/here:Q4', { installed: true })] })];
    await open();
    await screen.findByTestId('offer-installed');
    expect(screen.queryByTestId('offer-get')).toBeNull();
  });
});

describe('the disk', () => {
  const GB = 1_000_000_000;
  const disk = (folder: string, free_bytes: number, models: ModelDisk['models']): ModelDisk => ({
    folder,
    size_bytes: 20 * GB,
    free_bytes,
    models,
  });

  it('shows what models take, what else is there and what is free', async () => {
    disks = [
      disk('/data/models', 12 * GB, [
        { keeper: 'ollama', bytes: 1 * GB },
        { keeper: 'tierbar', bytes: 3 * GB },
      ]),
      disk('/Volumes/Models', 20 * GB, []),
    ];
    await open();
    const bar = await screen.findByRole('img', { name: 'Models take 4 GB of 20 GB, and 12 GB is free.' });
    expect([...bar.children].map((part) => (part as HTMLElement).style.width)).toEqual([
      '15%',
      '5%',
      '20%',
      '60%',
    ]);
    const [own, other] = screen.getAllByTestId('disk-use');
    expect(own?.textContent).toMatch(
      /Disk of \/data\/models.*Tierbar’s models\s+3 GB.*Ollama\s+1 GB.*Other files\s+4 GB.*Free\s+12 GB.*All models\s+4 GB/s,
    );
    expect(other?.textContent).toMatch(/Disk of \/Volumes\/Models.*Free\s+20 GB/s);
  });

  it('is not named if there is one', async () => {
    disks = [disk('/data/models', 12 * GB, [])];
    await open();
    expect((await screen.findByTestId('disk-use')).textContent).not.toContain('Disk of');
  });

  it('is shown before a download', async () => {
    disks = [disk('/data/models', 12 * GB, [])];
    catalog = [
      catalogModel('Big', {
        quants: [
          offered('o/big:Q4_K_M', { size_bytes: 5 * GB, recommended: true }),
          offered('o/big:Q8_0', { size_bytes: 13 * GB }),
        ],
      }),
    ];
    await openPage('big');
    await until(() => screen.queryByTestId('offer-room'));
    expect(screen.getByTestId('offer-room').textContent?.trim()).toBe('Leaves 7 GB free on the disk.');
    await fireEvent.change(screen.getByTestId('offer-quant'), { target: { value: 'o/big:Q8_0' } });
    expect(screen.getByTestId('offer-room').textContent?.trim()).toBe(
      'Needs 13 GB, and 12 GB is free on the disk.',
    );
  });
});

describe('a model’s page', () => {
  const known = (parts: Partial<CatalogModel> = {}) =>
    catalogModel('Known', {
      tier: 'primary',
      default: true,
      quants: [
        offered('o/known:Q8_0', { file: 'known-Q8_0.gguf', size_bytes: 9_000_000_000, fit: refused() }),
        offered('o/known:Q4_K_M', {
          file: 'known-Q4_K_M.gguf',
          recommended: true,
          reason: 'It fits.',
          grounds: { basis: 'balanced', measured: 'Q4_K_M', perplexity_increase: 0.0243 },
        }),
      ],
      ...parts,
    });

  it('opens from its row with the focus on its name, and leads back to the row', async () => {
    catalog = [known()];
    await open();
    const link = within(await waitFor(() => offer('Known'))).getByRole('link', { name: 'Known' });
    expect(within(offer('Known')).getByTestId('fit-chip').textContent?.trim()).toBe('Recommended · 5 GB');
    await fireEvent.click(link);
    const heading = await screen.findByRole('heading', { level: 1, name: 'Known' });
    expect(document.activeElement).toBe(heading);
    expect(screen.queryByTestId('find')).toBeNull();
    await fireEvent.click(screen.getByTestId('model-back'));
    await screen.findByTestId('find');
    await until(() => document.activeElement?.textContent === 'Known');
  });

  it('keeps a search until its return', async () => {
    catalog = [known()];
    answer = ({ path }) => (path.includes('/hub/search') ? Response.json({ models: [] }) : null);
    await open();
    await fireEvent.input(screen.getByTestId('find'), { target: { value: 'coder' } });
    await fireEvent.click(screen.getByTestId('find-submit'));
    await screen.findByText('No models with GGUF files match “coder”.');
    location.hash = '#models/known';
    await screen.findByTestId('model-page');
    location.hash = '#models';
    await screen.findByText('No models with GGUF files match “coder”.');
    await fireEvent.click(screen.getByTestId('find-clear'));
    expect(screen.getByTestId<HTMLInputElement>('find').value).toBe('');
    expect(document.activeElement).toBe(screen.getByTestId('find'));
  });

  it('has its quants from small to large, and downloads the chosen one', async () => {
    catalog = [known()];
    const page = within(await openPage('known'));
    const rows = within(page.getByTestId('quants')).getAllByRole('row').slice(1);
    expect(rows.map((row) => [...row.children].map((cell) => cell.textContent?.trim()))).toEqual([
      ['Q4_K_M', '5 GB', 'FitsRecommended', 'Chosen'],
      ['Q8_0', '9 GB', 'Too large', 'Use This'],
    ]);
    expect(page.getByTestId('quant-reason').textContent).toBe(
      'Q4_K_M: It fits in memory with 4 to 5 bits per weight, the usual balance of speed and quality. Published for Q4_K_M of Llama 3 8B: perplexity 2.4 % above 16 bits.',
    );
    await fireEvent.click(page.getByRole('button', { name: 'Use Known Q8_0', hidden: true }));
    expect(page.getByTestId<HTMLSelectElement>('offer-quant').value).toBe('o/known:Q8_0');
    expect(page.getByTestId('fit-details').textContent).toContain(
      'Does not fit this computer: with a context of 4,096 tokens it needs 20 GB, and the budget is 12 GB.',
    );
    await fireEvent.click(page.getByTestId('offer-get'));
    await fireEvent.click(screen.getByTestId('confirm'));
    await until(() => bodies('POST', '/tierbar/v1/downloads').length === 1);
    expect(bodies('POST', '/tierbar/v1/downloads')).toEqual([{ reference: 'o/known:Q8_0', anyway: true }]);
  });

  it('shows its own downloads alone', async () => {
    catalog = [known()];
    downloads = [download('known', { reference: 'o/known:Q8_0' }), download('other')];
    const page = within(await openPage('known'));
    expect(page.getByRole('progressbar', { name: 'Download of known-Q4_K_M' })).toBeTruthy();
    expect(screen.getAllByTestId('download')).toHaveLength(1);
    // The page is about the quant that comes, and does not offer it again.
    expect(page.queryByTestId('offer-get')).toBeNull();
    expect(page.getByTestId('fit-details').textContent).toContain('it needs 20 GB');
  });

  it('has what is installed of it, with its actions', async () => {
    catalog = [known()];
    const speed = { low: 20, high: 30, active_bytes: 1, paged_bytes: 0, measured: 25, error: 0 };
    models = [localModel('Known-Q5_K_M', { tiers: ['primary'], fit: verdict({ speed }) })];
    const page = within(await openPage('Known-Q5_K_M'));
    await page.findByText('Good at something.');
    expect(page.getByRole('heading', { level: 1 }).textContent).toBe('Known');
    expect(page.getByTestId('local-model').textContent).toMatch(
      /Q4_1.*Everyday.*98 MB · Known-Q5_K_M\.gguf/s,
    );
    expect(page.getByTestId('speed-here').textContent?.trim()).toBe(
      'On this computer: 25.0 tok/s measured, as expected',
    );
    expect(page.queryByTestId('offer')).toBeNull();
    await fireEvent.click(page.getByTestId('model-use'));
    expect(screen.getByTestId('use-primary').textContent).toContain('Everyday');
  });

  it('says in words what each quant loses, and by whose measure', async () => {
    catalog = [
      known({
        quants: [
          offered('o/known:Q8_0', { size_bytes: 9_000_000_000, loss: 'negligible' }),
          offered('o/known:IQ2_M', { size_bytes: 3_000_000_000, loss: 'heavy' }),
          offered('o/known:MXFP4', { size_bytes: 5_000_000_000, loss: null }),
        ],
      }),
    ];
    const page = within(await openPage('known'));
    const rows = within(page.getByTestId('quants')).getAllByRole('row').slice(1);
    expect(rows.map((row) => row.children[0]?.textContent)).toEqual([
      'IQ2_MHeavy loss',
      'MXFP4',
      'Q8_0Nearly the original',
    ]);
    expect(within(page.getByTestId('quant-source')).getByRole('link').getAttribute('href')).toContain(
      'llama.cpp',
    );
  });

  it('fetches the maker’s description only when asked, and shows it without HTML and pictures', async () => {
    catalog = [known({ maker: 'Example Labs', languages: 'more than 140' })];
    const text = '# Known\n\nGood at *things*. <script>alert(1)</script> ![a](https://x.example/a.png)';
    const asked = '/tierbar/v1/hub/readme?id=o%2FKnown-GGUF';
    answer = ({ path }) =>
      path === asked
        ? Response.json({ repository: 'o/Known-GGUF', url: 'https://huggingface.co/o/Known-GGUF', text })
        : null;
    const page = within(await openPage('known'));
    expect(page.getByTestId('model-facts').textContent).toMatch(/Developer.*Example Labs.*More than 140/s);
    expect(network.sent('GET', asked)).toHaveLength(0);
    const button = page.getByTestId('readme-show');
    expect(button.textContent?.trim()).toBe('Show the Maker’s Description');
    await fireEvent.click(button);
    const shown = await page.findByTestId('readme');
    await until(() => shown.querySelector('em')?.textContent === 'things');
    expect(shown.querySelector('script, img')).toBeNull();
    await fireEvent.click(button);
    expect(page.queryByTestId('readme')).toBeNull();
    await fireEvent.click(button);
    await page.findByTestId('readme');
    expect(network.sent('GET', asked)).toHaveLength(1);
  });

  it('says why there is no description, and tries again', async () => {
    catalog = [known()];
    answer = ({ path }) =>
      path.includes('/hub/readme') ? refusal(404, 'not_found', 'o/Known-GGUF has no readme') : null;
    const page = within(await openPage('known'));
    await fireEvent.click(page.getByTestId('readme-show'));
    expect((await page.findByTestId('readme-problem')).textContent).toContain('o/Known-GGUF has no readme.');
    expect(page.getByTestId('readme-show').textContent?.trim()).toBe('Show the Maker’s Description');
  });

  it('says that a model cannot chat', async () => {
    models = [localModel('base', { account: account({ chat_template: false }) })];
    const page = await openPage('base');
    expect(page.textContent).toContain('Not a chat model');
    expect(page.textContent).toContain('Only continues text. The file has no chat template.');
  });

  it('of an unknown model leads to the others', async () => {
    await start('#models/gone%2Fmodel');
    const message = await screen.findByTestId('model-unknown');
    expect(message.textContent).toContain('“gone/model” is neither installed nor in the list of models.');
    expect(within(message).getByRole('link').getAttribute('href')).toBe('#models');
  });
});

describe('the hub', () => {
  async function look(text: string) {
    await fireEvent.input(screen.getByTestId('find'), { target: { value: text } });
    await fireEvent.click(screen.getByTestId('find-submit'));
  }

  it('is searched, and a result shows its quants and their fit', async () => {
    answer = ({ path }) => {
      if (path.includes('/hub/search'))
        return Response.json({
          models: [
            {
              repository: 'o/r-GGUF',
              downloads: 12345,
              likes: 6,
              updated: '2026-05-01T10:00:00Z',
              gated: true,
            },
          ],
        });
      if (path.includes('/hub/repository'))
        return Response.json({
          repository: 'o/r-GGUF',
          revision: 'abc',
          licence: 'mit',
          gated: true,
          files: [offered('o/r-GGUF:Q8_0', { fit: refused() }), offered('o/r-GGUF:Q4_K_M')],
        });
      return null;
    };
    catalog = [catalogModel('Coder', { repository: 'o/r-GGUF', about: 'Code.' })];
    await open();
    await look('coder');
    const result = await screen.findByTestId('hub-result');
    expect(result.textContent).toContain('Code.');
    expect(result.textContent).toContain('12,345 downloads · 6 likes · updated 2026-05-01');
    await fireEvent.click(result);
    const select = await screen.findByTestId<HTMLSelectElement>('offer-quant');
    expect(select.value).toBe('o/r-GGUF:Q4_K_M');
    expect(offer('o/r-GGUF').textContent).toContain('Code.');
    expect(offer('o/r-GGUF').textContent).toContain('requires a Hugging Face token');
    await fireEvent.click(screen.getByTestId('hub-back'));
    await screen.findByTestId('hub-result');
  });

  it('checks one file, which can then be downloaded', async () => {
    answer = ({ path }) => (path.includes('/models/fit') ? Response.json(verdict()) : null);
    await open();
    await fireEvent.input(screen.getByTestId('find'), { target: { value: 'o/r-GGUF:Q5_K_M' } });
    expect(screen.getByTestId('find-submit').textContent?.trim()).toBe('Check');
    await fireEvent.click(screen.getByTestId('find-submit'));
    await fireEvent.click(await screen.findByTestId('offer-get'));
    await until(() => bodies('POST', '/tierbar/v1/downloads').length === 1);
    expect(bodies('POST', '/tierbar/v1/downloads')).toEqual([{ reference: 'o/r-GGUF:Q5_K_M' }]);
  });

  it('shows that it is unreachable, beside the catalog', async () => {
    catalog = [catalogModel('Starter')];
    answer = ({ path }) =>
      path.includes('/hub/')
        ? refusal(502, 'unreachable', 'huggingface.co cannot be reached', 'check the network')
        : null;
    await open();
    await look('coder');
    expect((await screen.findByTestId('error-banner')).textContent).toMatch(
      /huggingface\.co cannot be reached\..*Check the network\./,
    );
    expect(offer('Starter')).toBeTruthy();
    answer = ({ path }) => (path.includes('/hub/') ? Response.json({ models: [] }) : null);
    await fireEvent.click(screen.getByTestId('retry'));
    await screen.findByText('No models with GGUF files match “coder”.');
    expect(screen.queryByTestId('error-banner')).toBeNull();
  });
});

describe('an empty library', () => {
  it('leads to the models to download', async () => {
    Element.prototype.scrollIntoView = () => {};
    catalog = [catalogModel('Starter')];
    await open();
    await fireEvent.click(await screen.findByTestId('library-empty-show'));
    expect(document.activeElement?.textContent).toBe('Starter');
  });
});

describe('a menu', () => {
  it('works with the keyboard alone, and returns the focus', async () => {
    models = [localModel('gemma')];
    await open();
    const button = screen.getByTestId('model-more');
    await fireEvent.click(button);
    await until(() => document.activeElement === screen.getByTestId('model-copy-path'));
    await fireEvent.keyDown(document.activeElement as Element, { key: 'ArrowDown' });
    expect(document.activeElement).toBe(screen.getByTestId('model-verify'));
    await fireEvent.keyDown(document.activeElement as Element, { key: 'End' });
    expect(document.activeElement).toBe(screen.getByTestId('model-remove'));
    await fireEvent.keyDown(document.activeElement as Element, { key: 'ArrowDown' });
    expect(document.activeElement).toBe(screen.getByTestId('model-copy-path'));
    await fireEvent.keyDown(document.activeElement as Element, { key: 'Escape' });
    expect(screen.queryByRole('menu')).toBeNull();
    expect(document.activeElement).toBe(button);
  });

  it('copies the path of a model', async () => {
    const writeText = vi.fn(async () => {});
    vi.stubGlobal('navigator', { ...navigator, clipboard: { writeText } });
    models = [localModel('gemma')];
    await open();
    await fireEvent.click(screen.getByTestId('model-more'));
    await fireEvent.click(screen.getByTestId('model-copy-path'));
    await screen.findByText('/data/models/gemma.gguf');
    expect(writeText).toHaveBeenCalledWith('/data/models/gemma.gguf');
  });
});

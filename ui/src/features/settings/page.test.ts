import { fireEvent, screen } from '@testing-library/svelte';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { App } from '../../lib/app';
import type { Platform } from '../../platform';
import type { Config, TierConfig } from '../../platform/openapi';
import { browser } from '../../testing/browser';
import { configured, POLICY, TIER } from '../../testing/config';
import { Network, refusal, type Sent, STATUS, until } from '../../testing/host';
import { openSettings } from '../../testing/settings';
import { modelPatch } from '../tiers/chosen';

let network: Network;
let app: App;
let config: Config;
let refuse: string | null;
let source: string | null;

const MODELS = {
  models_dir: '/data/models',
  disks: [],
  models: [
    {
      id: 'smol',
      path: '/data/models/smol.gguf',
      size_bytes: 98_000_000,
      account: { quant: 'Q4_1', context_train: 8192, sampling: { top_k: 64 } },
      sampling: { answer: { temperature: 1, top_k: 64 }, thinking: {} },
      profiles: [
        {
          profile: 'balanced',
          context_tokens: 16_384,
          kv_cache: 'f16',
          placement: 'resident',
          total_bytes: 3 * 2 ** 30,
        },
        {
          profile: 'long_context',
          context_tokens: 65_536,
          kv_cache: 'q4_0',
          placement: 'mmap',
          total_bytes: 5 * 2 ** 30,
        },
        {
          profile: 'agent',
          context_tokens: 32_768,
          kv_cache: 'f16',
          placement: 'refused',
          total_bytes: 9 * 2 ** 30,
        },
      ],
    },
    {
      id: 'gemma',
      path: '/data/models/gemma.gguf',
      size_bytes: 4_980_000_000,
      account: { quant: 'Q4_K_M', context_train: 131072 },
    },
    { id: 'torn', path: '/data/models/torn.gguf', size_bytes: 1000, error: 'The file ends too early.' },
  ],
};

function answer({ method, path, body }: Sent): Response | null {
  if (path === '/tierbar/v1/models') return Response.json(MODELS);
  if (path === '/tierbar/v1/models/import') {
    config = { ...config, library: { ...config.library, folders: [...config.library.folders, body.path] } };
    return Response.json({ models: [] });
  }
  if (path.startsWith('/tierbar/v1/secrets')) {
    if (method === 'GET') return Response.json({ secrets: [{ name: 'hugging-face', source }] });
    if (refuse) return refusal(507, 'storage', refuse);
    source = method === 'PUT' ? 'keychain' : null;
    return new Response(null, { status: 204 });
  }
  if (/\/(bench|tune)$/.test(path)) return Response.json({ report: null });
  if (path !== '/tierbar/v1/config') return null;
  if (method === 'PATCH') {
    if (refuse) return refusal(400, 'config_invalid', refuse);
    const { tiers = {}, library, downloads, policy, ...rest } = body;
    config = {
      ...config,
      ...rest,
      library: { ...config.library, ...library },
      downloads: { ...config.downloads, ...downloads },
      policy: { ...config.policy, ...policy },
      tiers: { ...config.tiers },
    };
    for (const [id, tier] of Object.entries(tiers as Config['tiers'])) {
      if (tier === null) delete config.tiers[id];
      else
        config.tiers[id] = {
          ...(config.tiers[id] ?? TIER),
          ...Object.fromEntries(
            Object.entries(tier).map(([key, value]) => [key, value ?? TIER[key as keyof TierConfig]]),
          ),
        };
    }
  }
  return Response.json({ path: '/data/config.toml', config });
}

beforeEach(() => {
  browser();
  network = new Network();
  network.override = answer;
  refuse = null;
  source = null;
  config = configured({ tiers: { fast: { ...TIER, model: 'smol.gguf' } } });
});
afterEach(() => {
  app.feed.stop();
  location.hash = '';
});

async function open(section: string, extra: Partial<Platform> = {}) {
  app = await openSettings(network, section, STATUS, extra);
}

const patches = () => network.sent('PATCH', '/tierbar/v1/config').map((sent) => sent.body);

describe('general settings', () => {
  it('keep the focus on the language while the page is loaded in it', async () => {
    location.hash = '#general';
    history.replaceState('language', '');
    await open('#general');
    const field = await screen.findByTestId('settings-language');
    expect(document.activeElement).toBe(field);
    expect(history.state).toBeNull();
  });

  it('save the address on change and confirm it', async () => {
    await open('#access');
    const listen = await screen.findByTestId<HTMLInputElement>('settings-listen');
    expect(listen.value).toBe('127.0.0.1:11435');
    await fireEvent.change(listen, { target: { value: ' 0.0.0.0:9000 ' } });
    await screen.findByText('Saved');
    expect(patches()).toEqual([{ listen: '0.0.0.0:9000' }]);
    expect(screen.getByText(/Other computers can’t reach this address until/)).toBeTruthy();
  });

  it('show beside the field why a value is refused', async () => {
    await open('#access');
    refuse = '"nowhere" is not an address and port';
    const listen = await screen.findByTestId<HTMLInputElement>('settings-listen');
    await fireEvent.change(listen, { target: { value: 'nowhere' } });
    await until(() => screen.getByTestId('settings-listen-error').textContent?.includes('is not an address'));
    expect(listen.getAttribute('aria-invalid')).toBe('true');
    expect(listen.value).toBe('nowhere');
    expect(config.listen).toBe('127.0.0.1:11435');
  });

  it('forget why a number was refused when another is typed, also the saved one', async () => {
    await open('#tiers');
    refuse = '100 is less than 256';
    const context = await screen.findByTestId<HTMLInputElement>('settings-tier-fast-context');
    const saved = context.value;
    await fireEvent.change(context, { target: { value: '100' } });
    await until(() => context.getAttribute('aria-invalid') === 'true');
    await fireEvent.input(context, { target: { value: saved } });
    expect(context.getAttribute('aria-invalid')).toBe('false');
    await fireEvent.change(context, { target: { value: '10' } });
    await until(() => context.getAttribute('aria-invalid') === 'true');
    // Another section shows none of it, and after that the saved number is back.
    location.hash = '#access';
    await until(() => screen.queryByTestId('settings-tier-fast-context') === null);
    location.hash = '#tiers';
    expect((await screen.findByTestId('settings-tier-fast-context')).getAttribute('aria-invalid')).toBe(
      'false',
    );
  });

  it('offer to start at login only in the app', async () => {
    await open('');
    await screen.findByTestId('settings-hf-token');
    expect(screen.queryByTestId('settings-login-item')).toBeNull();
    expect(screen.queryByTestId('settings-reveal')).toBeNull();
  });

  it('puts a figure beside the icon in the menu bar', async () => {
    await open('', { loginItem: { get: async () => false, set: async () => false } });
    const text = (await screen.findByTestId('settings-menu-bar-text')) as HTMLSelectElement;
    expect(text.value).toBe('none');
    await fireEvent.change(text, { target: { value: 'memory' } });
    await until(() => network.sent('PATCH', '/tierbar/v1/config').length === 1);
    expect(network.sent('PATCH', '/tierbar/v1/config')[0]?.body).toEqual({ menu_bar: { text: 'memory' } });
  });

  it('takes a shortcut as it is pressed, and says at the field why it cannot be had', async () => {
    const checkShortcut = vi.fn(async (keys: string) => {
      if (keys === 'Cmd+K') throw 'another app has the keys Cmd+K';
    });
    await open('', { loginItem: { get: async () => false, set: async () => false }, checkShortcut });
    const field = (await screen.findByTestId('settings-shortcut')) as HTMLInputElement;
    expect(field.placeholder).toBe('None');
    await fireEvent.focus(field);
    expect(field.placeholder).toBe('Press the keys');
    await fireEvent.keyDown(field, { key: 'Meta', code: 'MetaLeft', metaKey: true });
    await fireEvent.keyDown(field, { key: 'k', code: 'KeyK', metaKey: true });
    expect((await screen.findByTestId('settings-shortcut-error')).textContent).toContain(
      'Another app has the keys',
    );
    expect(network.sent('PATCH', '/tierbar/v1/config')).toEqual([]);
    await fireEvent.keyDown(field, { key: ' ', code: 'Space', altKey: true, shiftKey: true });
    await until(() => network.sent('PATCH', '/tierbar/v1/config').length === 1);
    expect(network.sent('PATCH', '/tierbar/v1/config')[0]?.body).toEqual({
      menu_bar: { shortcut: 'Alt+Shift+Space' },
    });
    expect(checkShortcut.mock.calls).toEqual([['Cmd+K'], ['Alt+Shift+Space']]);
    // Tab leaves the field, and Delete removes the shortcut.
    expect(await fireEvent.keyDown(field, { key: 'Tab', code: 'Tab' })).toBe(true);
    await until(() => field.value === 'Alt+Shift+Space');
    await fireEvent.keyDown(field, { key: 'Backspace', code: 'Backspace' });
    await until(() => network.sent('PATCH', '/tierbar/v1/config').length === 2);
    expect(network.sent('PATCH', '/tierbar/v1/config')[1]?.body).toEqual({ menu_bar: { shortcut: '' } });
  });

  it('show the login item as the system reports it', async () => {
    const set = vi.fn(async () => true);
    await open('', { loginItem: { get: async () => false, set } });
    const item = await screen.findByTestId('settings-login-item');
    await until(() => !(item as HTMLButtonElement).disabled);
    expect(item.getAttribute('aria-checked')).toBe('false');
    await fireEvent.click(item);
    await until(() => item.getAttribute('aria-checked') === 'true');
    expect(set).toHaveBeenCalledWith(true);
    await fireEvent.click(item);
    await until(() => set.mock.calls.length === 2 && !(item as HTMLButtonElement).disabled);
    expect(item.getAttribute('aria-checked')).toBe('true');
  });
});

describe('the command line tool', () => {
  const at = (installed: boolean, in_path = true) => ({ path: '/bin/tierbar', installed, in_path });
  const tool = (set: () => Promise<ReturnType<typeof at>>) => ({
    loginItem: { get: async () => false, set: async () => false },
    commandLine: { get: async () => at(false), set },
  });

  it('is installed with one click, which says where', async () => {
    await open(
      '',
      tool(async () => at(true, false)),
    );
    const button = await screen.findByTestId('command-line');
    await until(() => button.textContent === 'Install Command Line Tool…');
    await fireEvent.click(button);
    await until(() => button.textContent === 'Remove…');
    await screen.findByText(/Installed as \/bin\/tierbar/);
    await screen.findByText(/Add it to PATH/);
  });

  it('says why it was not installed', async () => {
    await open(
      '',
      tool(async () => Promise.reject('/bin/tierbar is something else')),
    );
    const button = await screen.findByTestId('command-line');
    await until(() => !(button as HTMLButtonElement).disabled);
    await fireEvent.click(button);
    await screen.findByText(/is something else/);
    expect(button.textContent).toBe('Install Command Line Tool…');
  });
});

describe('browser sessions', () => {
  const old = () => {
    const error = { message: 'a browser session older than 10 minutes cannot do this', code: 'forbidden' };
    return Response.json({ error: { ...error, sign_in_again: true } }, { status: 403 });
  };

  it('that are too old for a change offer to sign in again', async () => {
    network.override = (sent) => (['PATCH', 'PUT'].includes(sent.method) ? old() : answer(sent));
    await open('#access');
    const listen = await screen.findByTestId('settings-listen');
    await fireEvent.change(listen, { target: { value: '0.0.0.0:9000' } });
    await screen.findByTestId('sign-in-again');
    location.hash = 'general';
    await fireEvent.input(await screen.findByTestId('settings-hf-token'), { target: { value: 'hf_secret' } });
    await fireEvent.click(screen.getByTestId('settings-hf-token-save'));
    const button = await screen.findByTestId('sign-in-again');
    await fireEvent.click(button);
    expect(await screen.findByTestId('token-input')).toBeTruthy();
  });

  it('do not offer it for another refusal', async () => {
    await open('#access');
    refuse = 'listen: the port is taken';
    await fireEvent.change(await screen.findByTestId('settings-listen'), { target: { value: '1' } });
    await screen.findByText(/the port is taken/i);
    expect(screen.queryByTestId('sign-in-again')).toBeNull();
  });

  it('end by signing out, and others on request', async () => {
    network.override = (sent) =>
      sent.method === 'DELETE' ? new Response(null, { status: 204 }) : answer(sent);
    await open('#access');
    const end = await screen.findByTestId('end-sessions');
    expect(end.textContent?.trim()).toBe('End Other Sessions');
    await fireEvent.click(end);
    await screen.findByText('Saved');
    expect(network.sent('DELETE', '/tierbar/v1/sessions')).toHaveLength(1);
    await fireEvent.click(screen.getByTestId('sign-out'));
    expect(await screen.findByTestId('token-input')).toBeTruthy();
    expect(network.sent('DELETE', '/tierbar/v1/session')).toHaveLength(1);
  });

  it('are not the app’s, whose window has the token', async () => {
    await open('#access', { connection: async () => ({ url: '', token: 't' }) });
    expect((await screen.findByTestId('end-sessions')).textContent?.trim()).toBe('End All Sessions');
    expect(screen.queryByTestId('sign-out')).toBeNull();
    app.feed.lock();
    const refused = await screen.findByTestId('token-refused');
    expect(screen.queryByTestId('token-input')).toBeNull();
    await fireEvent.click(refused.querySelector('button') as HTMLElement);
    await until(() => network.eventStreams.length === 2);
  });
});

describe('a page from before an update', () => {
  it('says to reload it', async () => {
    await open('');
    await screen.findByTestId('settings-hf-token');
    expect(screen.queryByTestId('outdated')).toBeNull();
    network.eventStreams[0]?.event('snapshot', { ...STATUS, version: '9.9.9' });
    await screen.findByTestId('outdated');
  });
});

describe('model folders', () => {
  it('are added and removed, and the models are read again', async () => {
    config.library.folders = ['/Volumes/Disk/Models', '~/Models'];
    await open('');
    const reads = () => network.sent('GET', '/tierbar/v1/models').length;
    await screen.findAllByTestId('settings-folder');
    const before = reads();
    await fireEvent.click(screen.getByRole('button', { name: 'Remove folder ~/Models' }));
    await until(() => screen.getAllByTestId('settings-folder').length === 1);
    expect(patches()).toEqual([{ library: { folders: ['/Volumes/Disk/Models'] } }]);
    await until(() => reads() > before);
    await fireEvent.input(screen.getByTestId('add-folder-path'), { target: { value: '~/New' } });
    await fireEvent.click(screen.getByTestId('add-folder'));
    await until(() => screen.getAllByTestId('settings-folder').length === 2);
    expect(config.library.folders).toEqual(['/Volumes/Disk/Models', '~/New']);
  });

  it('of other apps are ignored when that is off', async () => {
    await open('');
    const other = await screen.findByTestId('settings-other-apps');
    expect(other.getAttribute('aria-checked')).toBe('true');
    await fireEvent.click(other);
    await until(() => other.getAttribute('aria-checked') === 'false');
    expect(patches()).toEqual([{ library: { other_apps: false } }]);
  });
});

describe('download settings', () => {
  it('show the limit in MB/s, save bytes, and take an empty field as none', async () => {
    config.downloads.rate_limit = 12_500_000;
    await open('');
    const limit = await screen.findByTestId<HTMLInputElement>('settings-rate-limit');
    expect(limit.value).toBe('12.5');
    await fireEvent.change(limit, { target: { value: '-3' } });
    expect(limit.value).toBe('-3');
    expect(screen.getByTestId('settings-rate-limit-error').textContent?.trim()).toBe('Enter 0 or more.');
    await fireEvent.input(limit, { target: { value: '-' } });
    expect(screen.queryByTestId('settings-rate-limit-error')).toBeNull();
    await fireEvent.change(limit, { target: { value: '0.5' } });
    await until(() => patches().length === 1);
    await fireEvent.change(limit, { target: { value: '' } });
    await until(() => patches().length === 2);
    expect(patches()).toEqual([{ downloads: { rate_limit: 500_000 } }, { downloads: { rate_limit: 0 } }]);
  });

  it('take a whole number of simultaneous downloads, at least one', async () => {
    await open('');
    const atOnce = await screen.findByTestId<HTMLInputElement>('settings-at-once');
    await fireEvent.change(atOnce, { target: { value: '0' } });
    expect(screen.getByTestId('settings-at-once-error').textContent?.trim()).toBe(
      'Enter a whole number from 1 to 4.',
    );
    await fireEvent.change(atOnce, { target: { value: '3' } });
    await until(() => patches().length === 1);
    expect(patches()).toEqual([{ downloads: { at_once: 3 } }]);
  });
});

describe('the Hugging Face token', () => {
  const field = () => screen.findByTestId<HTMLInputElement>('settings-hf-token');

  it('is saved once, never shown, and can be removed', async () => {
    await open('');
    const token = await field();
    expect(network.sent('GET', '/tierbar/v1/secrets')).toHaveLength(1);
    expect(token.type).toBe('password');
    expect(screen.queryByTestId('settings-hf-token-remove')).toBeNull();
    await fireEvent.input(token, { target: { value: ' hf_secret\n' } });
    await fireEvent.click(screen.getByTestId('settings-hf-token-save'));
    const remove = await screen.findByTestId('settings-hf-token-remove');
    expect(token.value).toBe('');
    expect(document.body.innerHTML).not.toContain('hf_secret');
    expect(screen.getByText('Saved in the keychain.')).toBeTruthy();
    expect(network.sent('PUT', '/tierbar/v1/secrets/hugging-face').map(({ body }) => body)).toEqual([
      { value: 'hf_secret' },
    ]);
    await fireEvent.click(remove);
    await until(() => screen.queryByTestId('settings-hf-token-remove') === null);
    expect(source).toBeNull();
  });

  it('of the environment is named and cannot be removed', async () => {
    source = 'environment';
    await open('');
    await field();
    await screen.findByText(/Uses HF_TOKEN from the environment/);
    expect(screen.queryByTestId('settings-hf-token-remove')).toBeNull();
  });

  it('has a neighbor for the key of Brave’s search', async () => {
    await open('');
    await fireEvent.input(await screen.findByTestId('settings-brave-key'), { target: { value: 'BSA1' } });
    await fireEvent.click(screen.getByTestId('settings-brave-key-save'));
    await until(() => network.sent('PUT', '/tierbar/v1/secrets/brave-search').length === 1);
    expect(screen.queryByTestId('settings-hf-token-remove')).toBeNull();
  });

  it('stays in the field with the reason when saving fails', async () => {
    await open('');
    const token = await field();
    refuse = 'the keychain is locked';
    await fireEvent.input(token, { target: { value: 'hf_secret' } });
    await fireEvent.click(screen.getByTestId('settings-hf-token-save'));
    await until(() =>
      screen.getByTestId('settings-hf-token-error').textContent?.includes('keychain is locked'),
    );
    expect(token.value).toBe('hf_secret');
  });
});

describe('tier settings', () => {
  it('offer the models found and mark the unusable ones', async () => {
    await open('#tiers');
    const select = await screen.findByTestId<HTMLSelectElement>('settings-tier-fast-model');
    expect(document.getElementById('settings-tier-fast-model-help')?.textContent).toBe('Accepts text.');
    expect(select.value).toBe('smol');
    const options = [...select.options].map(({ text, disabled }) => [text, disabled]);
    expect(options).toEqual([
      ['No model', false],
      ['smol (98 MB, Q4_1)', false],
      ['gemma (5 GB, Q4_K_M)', false],
      ['torn (unusable)', true],
    ]);
    expect(screen.getByText('The file ends too early.')).toBeTruthy();
    await fireEvent.change(select, { target: { value: 'gemma' } });
    await until(() => patches().length === 1);
    expect(patches()).toEqual([{ tiers: { fast: modelPatch('gemma') } }]);
    expect(screen.queryByTestId('reset-fast')).toBeNull();
  });

  it('reset what was set for another model, and bring it back', async () => {
    Object.assign(config.tiers.fast as object, {
      context: 4096,
      batch: 1024,
      sampling: { temperature: 0.2 },
    });
    await open('#tiers');
    const select = await screen.findByTestId<HTMLSelectElement>('settings-tier-fast-model');
    await fireEvent.change(select, { target: { value: 'gemma' } });
    const notice = await screen.findByTestId('reset-fast');
    expect(notice.textContent).toContain('back to their defaults: Context, Batch size, Sampling.');
    expect(screen.getByTestId<HTMLInputElement>('settings-tier-fast-context').value).toBe('');
    await fireEvent.click(screen.getByTestId('reset-undo-fast'));
    await until(() => screen.queryByTestId('reset-fast') === null);
    expect(patches()[1]).toEqual({
      tiers: {
        fast: {
          ...modelPatch('smol.gguf'),
          context: 4096,
          batch: 1024,
          sampling: { temperature: 0.2 },
        },
      },
    });
    await until(() => select.value === 'smol');
  });

  it('show a configured model that was not found', async () => {
    (config.tiers.fast as { model: string }).model = 'lost.gguf';
    await open('#tiers');
    const select = await screen.findByTestId<HTMLSelectElement>('settings-tier-fast-model');
    expect(select.selectedOptions[0]?.text).toBe('lost.gguf (not found)');
  });

  it('name a configured model outside of the model folders by its file', async () => {
    (config.tiers.fast as { model: string }).model = '/Volumes/Disk/some.gguf';
    await open('#tiers');
    const select = await screen.findByTestId<HTMLSelectElement>('settings-tier-fast-model');
    expect(select.selectedOptions[0]?.text).toBe('some.gguf (not in a model folder)');
    expect(select.value).toBe('/Volumes/Disk/some.gguf');
  });

  it('save a number, and say at its field what is wrong with another', async () => {
    await open('#tiers');
    const context = await screen.findByTestId<HTMLInputElement>('settings-tier-fast-context');
    await fireEvent.change(context, { target: { value: '2048' } });
    await until(() => patches().length === 1);
    expect(patches()[0]).toEqual({ tiers: { fast: { context: 2048 } } });
    refuse = 'tiers.fast.context: 300 is too small';
    await fireEvent.change(context, { target: { value: '300' } });
    await until(() =>
      screen
        .getByTestId('settings-tier-fast-context-error')
        .textContent?.trim()
        .startsWith('300 is too small.'),
    );
    const threads = screen.getByTestId<HTMLInputElement>('settings-tier-fast-threads');
    expect([threads.value, threads.placeholder]).toEqual(['', 'Automatic']);
    const batch = screen.getByTestId<HTMLInputElement>('settings-tier-fast-batch');
    await fireEvent.change(batch, { target: { value: '' } });
    expect(batch.getAttribute('aria-invalid')).toBe('true');
    await fireEvent.change(context, { target: { value: '-5' } });
    const told = ['batch', 'context'].map((name) =>
      screen.getByTestId(`settings-tier-fast-${name}-error`).textContent?.trim(),
    );
    expect(told).toEqual([
      'Enter a whole number from 64 to 8,192.',
      'Enter a whole number from 256 to 1,048,576.',
    ]);
    expect([context.value, patches().length]).toEqual(['-5', 2]);
  });

  it('are few until Advanced is opened, which what was refused does', async () => {
    await open('#tiers');
    const advanced = await screen.findByTestId<HTMLDetailsElement>('settings-tier-fast-advanced');
    expect([advanced.open, advanced.contains(screen.getByTestId('settings-tier-fast-context'))]).toEqual([
      false,
      false,
    ]);
    const threads = screen.getByTestId<HTMLInputElement>('settings-tier-fast-threads');
    refuse = 'tiers.fast.threads: 900 is too many';
    await fireEvent.change(threads, { target: { value: '900' } });
    await until(() => advanced.open);
    refuse = null;
    await fireEvent.change(threads, { target: { value: '' } });
    await until(() => patches().length === 2);
    expect(patches()[1]).toEqual({ tiers: { fast: { threads: 0 } } });
    expect(advanced.open).toBe(true);
  });

  it('leave the context to Tierbar when its field is emptied, or by what the tier is used for', async () => {
    const fast = config.tiers.fast;
    if (fast) config.tiers.fast = { ...fast, context: 2048 };
    await open('#tiers');
    const profile = await screen.findByTestId<HTMLSelectElement>('settings-tier-fast-profile');
    expect(profile.selectedOptions[0]?.text).toBe('Your settings');
    const context = screen.getByTestId<HTMLInputElement>('settings-tier-fast-context');
    await fireEvent.change(context, { target: { value: '' } });
    await until(() => patches().length === 1);
    expect(patches()[0]).toEqual({ tiers: { fast: { context: 'auto' } } });
    await until(() => context.value === '' && context.placeholder === '4096');
    await until(() => profile.value === 'balanced');
    await fireEvent.change(profile, { target: { value: 'agent' } });
    await until(() => patches().length === 2);
    expect(patches()[1]).toEqual({
      tiers: { fast: { profile: 'agent', context: 'auto', kv_cache: 'auto' } },
    });
  });

  it('say what a profile costs before it is chosen, and go back to the user’s own settings', async () => {
    const fast = config.tiers.fast;
    if (fast) config.tiers.fast = { ...fast, context: 2048, kv_cache: 'q8_0' };
    await open('#tiers');
    const profile = await screen.findByTestId<HTMLSelectElement>('settings-tier-fast-profile');
    await until(() => profile.options[1]?.text.includes('GB'));
    expect([...profile.options].map(({ text }) => text)).toEqual([
      'Your settings',
      'Everyday use (16,384 tokens, 3 GB)',
      'Long documents (65,536 tokens, 5 GB, reads from disk)',
      'Coding agents (too large)',
      'Models larger than memory',
    ]);
    await fireEvent.change(profile, { target: { value: 'long_context' } });
    await until(() => profile.value === 'long_context');
    await fireEvent.change(profile, { target: { value: 'own' } });
    await until(() => patches().length === 2);
    expect(patches()[1]).toEqual({
      tiers: { fast: { profile: 'balanced', context: 2048, kv_cache: 'q8_0' } },
    });
  });

  it('change one value of the sampling, and give it back to the model', async () => {
    await open('#tiers');
    await fireEvent.click(await screen.findByTestId('settings-tier-fast-sampling'));
    const temperature = screen.getByTestId<HTMLInputElement>('settings-tier-fast-temperature');
    expect([temperature.value, temperature.placeholder]).toEqual(['', '1']);
    const sources = ['temperature', 'top_k', 'frequency_penalty'].map(
      (name) => screen.getByTestId(`settings-tier-fast-${name}-source`).textContent,
    );
    expect(sources).toEqual(['from its maker', 'from the file', 'default']);
    expect(screen.queryByTestId('settings-tier-fast-sampling-reset')).toBeNull();
    await fireEvent.change(temperature, { target: { value: '9' } });
    expect(screen.getByTestId('settings-tier-fast-temperature-error').textContent?.trim()).toBe(
      'Enter a number from 0 to 5.',
    );
    await fireEvent.change(temperature, { target: { value: '0.2' } });
    await until(() => patches().length === 1);
    expect(patches()[0]).toEqual({ tiers: { fast: { sampling: { temperature: 0.2 } } } });
    await until(() => screen.getByTestId('settings-tier-fast-temperature-source').textContent === 'set here');
    await fireEvent.change(temperature, { target: { value: '' } });
    await until(() => patches().length === 2);
    expect(patches()[1]).toEqual({ tiers: { fast: { sampling: { temperature: null } } } });
  });

  it('give all of the sampling back to the model', async () => {
    const fast = config.tiers.fast;
    if (fast) config.tiers.fast = { ...fast, sampling: { temperature: 0.2, frequency_penalty: 0.5 } };
    await open('#tiers');
    await fireEvent.click(await screen.findByTestId('settings-tier-fast-sampling-reset'));
    await until(() => patches().length === 1);
    const sampling = patches()[0].tiers.fast.sampling;
    expect(Object.values(sampling).every((value) => value === null)).toBe(true);
    expect(Object.keys(sampling)).toContain('frequency_penalty');
  });

  it('set the idle time, and offer one written by hand', async () => {
    const fast = config.tiers.fast;
    if (fast) config.tiers.fast = { ...fast, idle_unload: '90s' };
    await open('#tiers');
    const idle = await screen.findByTestId<HTMLSelectElement>('settings-tier-fast-idle');
    expect([idle.value, idle.selectedOptions[0]?.text]).toEqual(['90s', 'After 90 seconds']);
    await fireEvent.change(idle, { target: { value: 'never' } });
    await until(() => patches().length === 1);
    expect(patches()[0]).toEqual({ tiers: { fast: { idle_unload: 'never' } } });
    await fireEvent.click(screen.getByTestId('settings-tier-fast-pinned'));
    await until(() => idle.disabled);
    expect(patches()[1]).toEqual({ tiers: { fast: { pinned: true } } });
  });

  it('set how many models may be loaded', async () => {
    await open('#tiers');
    const most = await screen.findByTestId<HTMLSelectElement>('settings-max-loaded');
    expect(most.value).toBe('auto');
    await fireEvent.change(most, { target: { value: '2' } });
    await until(() => patches().length === 1);
    expect(patches()).toEqual([{ policy: { max_loaded: 2 } }]);
  });

  it('set the home tier and the switching delay', async () => {
    await open('#tiers');
    await fireEvent.change(await screen.findByTestId('settings-home'), { target: { value: 'fast' } });
    await until(() => patches().length === 1);
    await fireEvent.change(screen.getByTestId('settings-patience'), { target: { value: '30s' } });
    await until(() => patches().length === 2);
    expect(patches()).toEqual([{ policy: { home: 'fast' } }, { policy: { patience: '30s' } }]);
    expect(config.policy).toEqual({ ...POLICY, patience: '30s', home: 'fast' });
  });

  it('set quiet hours, battery, full screen and stepping down', async () => {
    await open('#tiers');
    const hours = await screen.findByTestId('settings-quiet');
    await fireEvent.change(hours, { target: { value: ' 22:00-07:30 ' } });
    await until(() => patches().length === 1);
    await fireEvent.change(screen.getByTestId('settings-battery'), { target: { value: '0' } });
    await until(() => patches().length === 2);
    await fireEvent.click(screen.getByTestId('settings-full-screen'));
    await until(() => patches().length === 3);
    await fireEvent.click(screen.getByTestId('settings-step-down'));
    await until(() => patches().length === 4);
    expect(patches()).toEqual([
      { policy: { quiet_hours: '22:00-07:30' } },
      { policy: { battery_below: 0 } },
      { policy: { defer_to_full_screen: false } },
      { policy: { step_down: false } },
    ]);
  });

  it('pause all tiers and resume them', async () => {
    await open('#tiers');
    const button = await screen.findByTestId('settings-pause');
    await fireEvent.click(button);
    await until(() => network.sent('POST', '/tierbar/v1/pause').length === 1);
    network.eventStreams[0]?.event('change', {
      guard: { ...STATUS.guard, stance: 'paused', why: 'Tierbar is paused' },
    });
    await until(() => button.textContent?.trim() === 'Resume');
    await fireEvent.click(button);
    await until(() => network.sent('POST', '/tierbar/v1/resume').length === 1);
  });

  it('show a command and an endpoint without a choice of models', async () => {
    Object.assign(config.tiers.fast as object, {
      engine: {
        command: ['/opt/llama-server', '-m', '/My Models/x.gguf', '--host', '{socket}'],
        memory: '6GiB',
      },
    });
    config.tiers.primary = {
      ...(config.tiers.fast as TierConfig),
      engine: { endpoint: 'http://127.0.0.1:11434' },
    };
    await open('#tiers');
    const command = await screen.findByTestId('settings-tier-fast-engine');
    expect(command.textContent).toBe("/opt/llama-server -m '/My Models/x.gguf' --host {socket}");
    expect(screen.getByText('Command')).toBeTruthy();
    expect(screen.getByText(/with 6GiB of memory reserved/)).toBeTruthy();
    expect(screen.getByText('Endpoint')).toBeTruthy();
    expect(screen.getByTestId('settings-tier-primary-engine').textContent).toBe('http://127.0.0.1:11434');
    for (const tier of ['fast', 'primary']) {
      expect(screen.queryByTestId(`settings-tier-${tier}-kv`)).toBeNull();
      expect(document.getElementById(`settings-tier-${tier}-model`)).toBeNull();
    }
    expect(screen.getByTestId('settings-tier-fast-pinned')).toBeTruthy();
    expect(screen.queryByTestId('settings-tier-primary-pinned')).toBeNull();
  });

  it('choose either a draft model or prompt lookup', async () => {
    await open('#tiers');
    const lookup = await screen.findByTestId('settings-tier-fast-lookup');
    const draft = screen.getByTestId<HTMLSelectElement>('settings-tier-fast-draft_model');
    const on = () => lookup.getAttribute('aria-checked');
    expect([on(), draft.value, draft.options[0]?.text]).toEqual(['false', '', 'None']);

    await fireEvent.click(lookup);
    await until(() => on() === 'true');
    await fireEvent.change(draft, { target: { value: 'gemma' } });
    await until(() => on() === 'false');
    expect(draft.value).toBe('gemma');
    await fireEvent.click(lookup);
    await until(() => on() === 'true');
    expect(draft.value).toBe('');
    await fireEvent.click(lookup);
    await until(() => on() === 'false');
    await fireEvent.change(draft, { target: { value: 'smol' } });
    await until(() => patches().length === 5);
    await fireEvent.change(draft, { target: { value: '' } });
    await until(() => patches().length === 6);
    expect(patches().map(({ tiers }) => tiers.fast)).toEqual([
      { lookup: true },
      { draft_model: 'gemma', lookup: false },
      { lookup: true, draft_model: '' },
      { lookup: false },
      { draft_model: 'smol' },
      { draft_model: '' },
    ]);
  });

  it('show why a draft model is refused, and that it takes precedence', async () => {
    Object.assign(config.tiers.fast as object, { lookup: true, draft_model: 'lost.gguf' });
    await open('#tiers');
    const draft = await screen.findByTestId<HTMLSelectElement>('settings-tier-fast-draft_model');
    expect(draft.selectedOptions[0]?.text).toBe('lost.gguf (not found)');
    expect(screen.getByText(/The draft model is used instead/)).toBeTruthy();
    refuse = 'tiers.fast.draft_model: this is not a valid file name';
    await fireEvent.change(draft, { target: { value: 'smol' } });
    await until(() =>
      screen
        .getByTestId('settings-tier-fast-draft_model-error')
        .textContent?.includes('not a valid file name'),
    );
    expect(draft.getAttribute('aria-invalid')).toBe('true');
  });

  it('add a tier, and remove one after confirmation', async () => {
    await open('#tiers');
    await fireEvent.input(await screen.findByTestId('settings-new-tier'), { target: { value: 'coder' } });
    await fireEvent.click(screen.getByTestId('settings-add-tier'));
    await screen.findByTestId('settings-tier-coder-model');
    await fireEvent.click(screen.getByTestId('settings-tier-coder-remove'));
    await fireEvent.click(screen.getByTestId('confirm'));
    await until(() => screen.queryByTestId('settings-tier-coder-model') === null);
    expect(patches()).toEqual([{ tiers: { coder: {} } }, { tiers: { coder: null } }]);
  });
});

describe('the monitor', () => {
  it('shows memory, the budget and each tier', async () => {
    await open('#monitor');
    expect((await screen.findByTestId('memory-ram')).textContent).toContain('7 GB of 16 GB');
    expect(screen.getByTestId('memory-budget').textContent).toContain('2 GB of 12 GB');
    expect(screen.getByTestId('memory-bar').ariaLabel).toBe(
      'RAM: other apps 6 GB, Everyday 1 GB used of 2 GB planned (Ready), 9 GB of 16 GB available',
    );
    expect(screen.getByTestId('memory-tier-primary').textContent).toMatch(
      /Ready.*gemma · 8,192 tokens of context · process 7.*1 GB used of 2 GB planned/s,
    );
    expect(screen.queryByTestId('plan-primary')).toBeNull();
    const plan = screen.getByRole('button', { name: 'Memory plan of Everyday: 1 GB used of 2 GB planned' });
    await fireEvent.click(plan);
    expect(plan.ariaExpanded ?? plan.getAttribute('aria-expanded')).toBe('true');
    expect(screen.getByTestId('plan-primary').textContent).toMatch(/Weights\s*1 GB.*KV cache\s*512 MB/s);
    network.eventStreams[0]?.event('change', {
      swap: { used_bytes: 2 ** 30, growth_bytes_per_minute: 2 ** 20 },
    });
    await until(() => screen.getByTestId('memory-swap').textContent?.includes('Growing by 1 MB per minute.'));
  });
});

import { fireEvent, screen, within } from '@testing-library/svelte';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { App } from '../../lib/app';
import type { Config, SecretPlace } from '../../platform/openapi';
import { browser } from '../../testing/browser';
import { configured, TIER } from '../../testing/config';
import { Network, refusal, type Sent, until } from '../../testing/host';
import { openSettings } from '../../testing/settings';
import { baseUrl, freeName, PROVIDERS } from './providers';
import { addStep, moveStep } from './steps';

const CHAIN = { retries: 1, wait: '30s', time: '5m', cost: 0, hedge: '0s', mark: false, triage: false };

let network: Network;
let app: App;
let config: Config;
let secrets: SecretPlace[];
let fault: string | null;

function answer({ method, path, body }: Sent): Response | null {
  if (path === '/tierbar/v1/models')
    return Response.json({ models_dir: '/data/models', disks: [], models: [] });
  if (path === '/tierbar/v1/config') {
    const { tiers = {}, chains = {} } = method === 'PATCH' ? body : {};
    for (const [name, tier] of Object.entries(tiers as Record<string, object | null>)) {
      if (tier === null) delete config.tiers[name];
      else config.tiers = { ...config.tiers, [name]: { ...TIER, ...config.tiers[name], ...tier } };
    }
    for (const [name, chain] of Object.entries(chains as Record<string, object | null>)) {
      if (chain === null) delete config.chains[name];
      else
        config.chains = {
          ...config.chains,
          [name]: { steps: [], ...CHAIN, ...config.chains[name], ...chain },
        };
    }
    return Response.json({ path: '/data/config.toml', config: structuredClone(config) });
  }
  if (path === '/tierbar/v1/secrets') return Response.json({ secrets });
  if (path.startsWith('/tierbar/v1/secrets/')) {
    secrets = secrets.map((one) =>
      path.endsWith(one.name) ? { ...one, source: method === 'PUT' ? 'keychain' : null } : one,
    );
    return new Response(null, { status: 204 });
  }
  if (path !== '/v1/chat/completions') return null;
  if (fault !== null) return refusal(502, 'upstream', fault);
  return Response.json({ choices: [{ index: 0, message: { role: 'assistant', content: 'OK' } }] });
}

beforeEach(() => {
  browser();
  network = new Network();
  network.override = answer;
  config = configured({ tiers: { fast: { ...TIER, model: 'smol' } } });
  secrets = [{ name: 'api.anthropic.com', source: null }];
  fault = null;
});
afterEach(() => {
  app.feed.stop();
  location.hash = '';
});

async function open() {
  app = await openSettings(network, 'servers');
  await screen.findByTestId('server-provider');
}

const patches = () => network.sent('PATCH', '/tierbar/v1/config').map((sent) => sent.body);
const type = (id: string, value: string) => fireEvent.input(screen.getByTestId(id), { target: { value } });

describe('a server', () => {
  it('is added with its key in one step, and tested', async () => {
    await open();
    await fireEvent.change(screen.getByTestId('server-provider'), { target: { value: 'anthropic' } });
    const add = await screen.findByTestId<HTMLButtonElement>('server-add');
    await type('server-url', 'notaurl');
    await fireEvent.click(add);
    expect(screen.getByTestId('server-url-error').textContent).toContain('begins with http:// or https://');
    expect(document.activeElement).toBe(screen.getByTestId('server-url'));
    await type('server-url', 'https://api.anthropic.com');
    expect(screen.queryByTestId('server-url-error')).toBeNull();
    await fireEvent.click(add);
    expect(screen.getByTestId('server-model-error').textContent).toContain('such as claude-');
    await type('server-model', 'claude-sonnet-4-5');
    await type('server-key', 'sk-secret');
    await fireEvent.click(add);
    const engine = { endpoint: 'https://api.anthropic.com', dialect: 'anthropic' };
    await until(() => patches().length === 1);
    expect(patches()).toEqual([{ tiers: { anthropic: { model: 'claude-sonnet-4-5', engine } } }]);
    const outcome = await screen.findByTestId('server-anthropic-outcome');
    expect(outcome.textContent).toContain('Answered “OK”');
    expect(network.sent('PUT', '/tierbar/v1/secrets/api.anthropic.com')[0]?.body).toEqual({
      value: 'sk-secret',
    });
    expect(network.sent('POST', '/v1/chat/completions')[0]?.body.model).toBe('anthropic');
    expect(screen.getByTestId<HTMLInputElement>('server-anthropic-key').placeholder).toContain('Key saved');
    expect(screen.queryByTestId('server-model')).toBeNull();
    expect(document.activeElement).toBe(screen.getByTestId('server-provider'));
  });

  it('says what its test was refused for', async () => {
    const engine = { endpoint: 'https://api.anthropic.com', dialect: 'anthropic' as const };
    config.tiers.sonnet = { ...TIER, model: 'claude', engine };
    fault = 'api.anthropic.com refuses the key';
    await open();
    await fireEvent.click(await screen.findByTestId('server-sonnet-test'));
    expect((await screen.findByTestId('server-sonnet-outcome')).textContent).toContain('refuses the key');
  });

  it('leaves the focus on the page when it is removed', async () => {
    config.tiers.sonnet = { ...TIER, model: 'claude', engine: { endpoint: 'https://api.anthropic.com' } };
    await open();
    await fireEvent.click(await screen.findByTestId('server-sonnet-remove'));
    await fireEvent.click(screen.getByTestId('confirm'));
    await until(() => screen.queryByTestId('server-sonnet') === null);
    await until(() => document.activeElement === screen.getByTestId('server-provider'));
    expect(patches()).toEqual([{ tiers: { sonnet: null } }]);
  });

  it('keeps the rest of its engine when a price is set', async () => {
    const engine = { endpoint: 'https://api.anthropic.com', dialect: 'anthropic' as const, output_price: 15 };
    config.tiers.sonnet = { ...TIER, model: 'claude', engine };
    await open();
    const price = await screen.findByLabelText<HTMLInputElement>('US$ per million tokens in');
    await fireEvent.change(price, { target: { value: '-3' } });
    expect([price.value, price.getAttribute('aria-invalid')]).toEqual(['-3', 'true']);
    await fireEvent.input(screen.getByLabelText('US$ per million tokens out'), { target: { value: '9' } });
    expect(price.getAttribute('aria-invalid')).toBe('true');
    expect(screen.getByRole('alert').textContent).toBe('Enter 0 or more.');
    await fireEvent.input(price, { target: { value: '3' } });
    expect(screen.queryByRole('alert')).toBeNull();
    await fireEvent.change(price);
    await until(() => patches().length === 1);
    expect(patches()).toEqual([{ tiers: { sonnet: { engine: { ...engine, input_price: 3 } } } }]);
  });

  it('has prices of cached tokens, which have defaults', async () => {
    const engine = { endpoint: 'https://api.anthropic.com', cache_write_price: 3.75 };
    config.tiers.sonnet = { ...TIER, model: 'claude', engine };
    await open();
    const read = await screen.findByLabelText<HTMLInputElement>('US$ per million tokens read from the cache');
    const written = screen.getByLabelText<HTMLInputElement>('US$ per million tokens written to the cache');
    expect([read.placeholder, written.value]).toEqual(['Default', '3.75']);
    await fireEvent.change(read, { target: { value: '0.3' } });
    await until(() => patches().length === 1);
    expect(patches()).toEqual([{ tiers: { sonnet: { engine: { ...engine, cache_read_price: 0.3 } } } }]);
  });

  it('has the address before /v1, however it was pasted, and a free name', () => {
    for (const pasted of [
      'https://a.io/',
      'https://a.io/v1',
      ' https://a.io/v1/chat/completions ',
      'https://a.io',
    ])
      expect(baseUrl(pasted)).toBe('https://a.io');
    expect(baseUrl('https://openrouter.ai/api/v1')).toBe('https://openrouter.ai/api');
    const openai = PROVIDERS.find(({ id }) => id === 'openai');
    if (!openai) throw new Error('no OpenAI');
    expect(freeName(openai, [])).toBe('openai');
    expect(freeName(openai, ['openai', 'openai-2'])).toBe('openai-3');
  });
});

describe('a chain', () => {
  it('is created of what there is, and rearranged by button, key and menu', async () => {
    config.tiers.sonnet = { ...TIER, model: 'claude', engine: { endpoint: 'https://api.anthropic.com' } };
    config.tiers.primary = { ...TIER, model: 'big' };
    await open();
    await type('chain-new', 'At Work');
    await fireEvent.click(screen.getByTestId('chain-create'));
    expect((await screen.findByTestId('chain-new-error')).textContent).toContain(
      'Use up to 32 lowercase letters',
    );
    await type('chain-new', 'work');
    expect(screen.queryByTestId('chain-new-error')).toBeNull();
    await fireEvent.click(screen.getByTestId('chain-create'));
    const chain = await screen.findByTestId('chain-edit-work');
    const steps = () =>
      within(chain)
        .getAllByRole('listitem')
        .map((item) => item.dataset.step);
    expect(steps()).toEqual(['sonnet', 'fast', 'queue']);
    await fireEvent.change(screen.getByTestId('chain-edit-work-add'), { target: { value: 'primary' } });
    await until(() => steps().length === 4);
    expect(steps()).toEqual(['sonnet', 'fast', 'primary', 'queue']);
    await fireEvent.click(within(chain).getByRole('button', { name: 'Move Everyday up' }));
    await until(() => steps()[1] === 'primary');
    const up = within(chain).getByRole('button', { name: 'Move Everyday up' });
    await fireEvent.keyDown(up, { key: 'ArrowUp', altKey: true });
    await until(() => steps()[0] === 'primary');
    await screen.findByText('Everyday: step 1 of 4');
    // The button that moved it has nothing left to do.
    await until(() => document.activeElement?.getAttribute('aria-label') === 'Move Everyday down');
    await fireEvent.click(screen.getByTestId('chain-edit-work-remove'));
    await fireEvent.click(screen.getByTestId('confirm'));
    await until(() => screen.queryByTestId('chain-edit-work') === null);
    expect(patches().at(-1)).toEqual({ chains: { work: null } });
  });

  it('keeps the queue last', () => {
    expect(moveStep(['a', 'b', 'queue'], 0, 2)).toEqual(['b', 'a', 'queue']);
    expect(moveStep(['a', 'b', 'queue'], 2, 0)).toEqual(['a', 'b', 'queue']);
    expect(moveStep(['a', 'b'], 0, 5)).toEqual(['b', 'a']);
    expect(addStep(['a', 'queue'], 'b')).toEqual(['a', 'b', 'queue']);
    expect(addStep(['a'], 'queue')).toEqual(['a', 'queue']);
    expect(addStep(['a'], 'a')).toEqual(['a']);
  });
});

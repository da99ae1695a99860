import { fireEvent, screen } from '@testing-library/svelte';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { App } from '../../lib/app';
import type { ApiKey, Config, Status } from '../../platform/openapi';
import { browser } from '../../testing/browser';
import { configured } from '../../testing/config';
import { Network, refusal, type Sent, STATUS, until } from '../../testing/host';
import { openSettings } from '../../testing/settings';
import { onLoopback, onNetwork } from './listen';

let network: Network;
let app: App;
let config: Config;
let keys: ApiKey[];
let refuse: string | null;

function answer({ method, path, body }: Sent): Response | null {
  if (path === '/tierbar/v1/models')
    return Response.json({ models_dir: '/data/models', disks: [], models: [] });
  if (path === '/tierbar/v1/config') {
    if (method === 'PATCH') {
      const { server, ...rest } = body;
      config = { ...config, ...rest, server: { ...config.server, ...server } };
    }
    return Response.json({ path: '/data/config.toml', config });
  }
  if (!path.startsWith('/tierbar/v1/keys')) return null;
  if (refuse !== null && method !== 'GET') return refusal(409, 'conflict', refuse);
  if (method === 'POST') {
    const key = { ...body, created_ms: Date.now(), last_used_ms: null, revoked_ms: null };
    keys.push(key);
    return Response.json({ ...key, key: 'tb-secret' }, { status: 201 });
  }
  if (method === 'DELETE') {
    const key = keys.find(({ name }) => path.endsWith(`/${name}`));
    if (key) key.revoked_ms = 1;
    return new Response(null, { status: 204 });
  }
  return Response.json({ keys });
}

beforeEach(() => {
  browser();
  network = new Network();
  network.override = answer;
  config = configured();
  keys = [];
  refuse = null;
});
afterEach(() => {
  app.feed.stop();
  location.hash = '';
});

async function open(status: Status = STATUS) {
  app = await openSettings(network, 'access', status);
  await screen.findByTestId('settings-listen');
}

const patches = () => network.sent('PATCH', '/tierbar/v1/config').map((sent) => sent.body);

describe('other computers', () => {
  it('are let in after a warning, on the same port, and shut out at once', async () => {
    await open();
    const allow = await screen.findByTestId('settings-network');
    await fireEvent.click(allow);
    expect(patches()).toEqual([]);
    await fireEvent.click(await screen.findByTestId('confirm'));
    await until(() => allow.getAttribute('aria-checked') === 'true');
    expect(patches()).toEqual([{ listen: '0.0.0.0:11435', server: { network: true } }]);
    await screen.findByText(/Restart Tierbar to open the address/);
    await screen.findByText(/cross your network unencrypted/);
    await fireEvent.click(screen.getByTestId('settings-tls'));
    await until(() => screen.queryByText(/cross your network unencrypted/) === null);
    await fireEvent.click(allow);
    await until(() => allow.getAttribute('aria-checked') === 'false');
    expect(patches().at(-1)).toEqual({ listen: '127.0.0.1:11435', server: { network: false } });
  });

  it('find the address by a QR code once it is open', async () => {
    config = configured({ listen: '0.0.0.0:11435', server: { ...configured().server, network: true } });
    await open({ ...STATUS, url: 'http://192.168.1.5:11435' });
    const code = await screen.findByTestId('qr-code');
    expect(code.getAttribute('aria-label')).toContain('http://192.168.1.5:11435');
    expect(code.querySelector('path')?.getAttribute('d')?.length).toBeGreaterThan(500);
  });
});

it('an address keeps its port, and one beyond this computer stays as it is', () => {
  expect(onNetwork('127.0.0.1:9000')).toBe('0.0.0.0:9000');
  expect(onNetwork('192.168.1.5:9000')).toBe('192.168.1.5:9000');
  expect(onLoopback('0.0.0.0:9000')).toBe('127.0.0.1:9000');
  expect(onLoopback('[::]:9000')).toBe('127.0.0.1:9000');
  expect(onLoopback('localhost:9000')).toBe('localhost:9000');
});

describe('API keys', () => {
  it('are created with limits, shown once, and revoked after a question', async () => {
    await open();
    await screen.findByText('No program needs a key yet.');
    await fireEvent.input(screen.getByTestId('key-name'), { target: { value: ' phone ' } });
    await fireEvent.input(screen.getByLabelText('Requests per minute'), { target: { value: '60' } });
    await fireEvent.click(screen.getByTestId('key-create'));
    expect((await screen.findByTestId('key-secret')).textContent).toBe('tb-secret');
    const limits = { requests_per_minute: 60, at_once: null, tokens_per_day: null };
    expect(network.sent('POST', '/tierbar/v1/keys')[0]?.body).toEqual({ name: 'phone', ...limits });
    expect((await screen.findByTestId('key-phone')).textContent).toContain(
      '60 requests per minute · Never used',
    );
    await fireEvent.click(screen.getByTestId('key-revoke-phone'));
    await fireEvent.click(await screen.findByTestId('confirm'));
    await until(() => screen.queryByTestId('key-phone') === null);
    expect(screen.queryByTestId('key-secret')).toBeNull();
  });

  it('say why one was not created, and keep what was typed', async () => {
    await open();
    refuse = 'there is a key "phone"';
    const name = await screen.findByTestId<HTMLInputElement>('key-name');
    await fireEvent.input(name, { target: { value: 'phone' } });
    await fireEvent.click(screen.getByTestId('key-create'));
    await screen.findByText(/there is a key/i);
    expect(name.value).toBe('phone');
  });
});

it('what agents may do without asking again is listed, and revoked', async () => {
  let grants = [
    {
      id: 'g1',
      title: 'Run this command',
      what: 'make test',
      folder: '/work',
      chat: 'c1',
      since: 1,
      until: 2,
    },
  ];
  network.override = (sent) => {
    if (!sent.path.startsWith('/tierbar/v1/agent/grants')) return answer(sent);
    if (sent.method === 'GET') return Response.json({ grants });
    grants = [];
    return new Response(null, { status: 204 });
  };
  await open();
  expect((await screen.findByTestId('agent-grant')).textContent).toMatch(/make test.*In one chat, until/s);
  await fireEvent.click(screen.getByTestId('agent-revoke'));
  await until(() => screen.queryByTestId('agent-grant') === null);
  expect(network.sent('DELETE', '/tierbar/v1/agent/grants/g1')).toHaveLength(1);
});

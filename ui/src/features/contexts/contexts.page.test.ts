import { fireEvent, screen } from '@testing-library/svelte';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { App } from '../../lib/app';
import type { ContextsConfig } from '../../platform/openapi';
import { browser } from '../../testing/browser';
import { configured } from '../../testing/config';
import { Network, STATUS, until } from '../../testing/host';
import { openSettings } from '../../testing/settings';

const STORE: ContextsConfig = { form: 'exact', store: '~/Dropbox', endpoint: '', region: '', access_key: '' };
let network: Network;
let app: App;
/** When each was saved, by name. */
let here: Record<string, number>;
let stored: Record<string, number>;
let contexts: ContextsConfig;
let conflicts: boolean;
let form: 'exact' | 'compact';

function list(of: Record<string, number>): Response {
  const data = Object.entries(of).map(([name, created]) => ({
    name,
    model: 'big',
    tokens: 12_000,
    bytes: 1_500_000_000,
    raw_bytes: 1_800_000_000,
    created,
    form,
    kv_cache: 'f16',
  }));
  return Response.json({ object: 'list', data });
}

function refused(code: string, message: string, status: number): Response {
  return Response.json({ error: { code, message } }, { status });
}

beforeEach(() => {
  browser();
  network = new Network();
  here = {};
  stored = {};
  contexts = { form: 'exact', store: '', endpoint: '', region: '', access_key: '' };
  form = 'exact';
  conflicts = false;
  network.override = ({ path, method, body }) => {
    switch (path) {
      case '/v1/context':
        return list(here);
      case '/v1/context/store':
        return list(stored);
      case '/v1/context/delete':
        delete (body.store ? stored : here)[body.name];
        return Response.json({ name: body.name, deleted: true });
      case '/v1/context/save':
        if (body.name in here && !body.replace) return refused('conflict', 'there is another one', 409);
        here[body.name] = 2;
        return Response.json({});
      case '/v1/context/load':
        return Response.json({});
      case '/v1/context/upload':
        if (conflicts && !body.replace) return refused('conflict', 'the store has another one', 409);
        stored[body.name] = here[body.name] ?? 0;
        return Response.json({});
      case '/v1/context/download':
        return refused('corrupt', 'the context in the store was changed', 502);
      case '/tierbar/v1/setup/answers':
        return Response.json({ answers: [] });
      case '/tierbar/v1/secrets':
        return Response.json({ secrets: [{ name: 'context-passphrase', source: null }] });
      case '/tierbar/v1/config':
        if (method === 'PATCH') contexts = { ...contexts, ...body.contexts };
        return Response.json({ config: configured({ contexts }), path: '/data/config.toml' });
    }
    if (path.startsWith('/tierbar/v1/secrets/')) return new Response(null, { status: 204 });
    return null;
  };
});
afterEach(() => {
  app.feed.stop();
  location.hash = '';
});

const rows = () => screen.queryAllByTestId('saved-context');

it('saved contexts are listed with their size, and deleted', async () => {
  here = { book: 1_784_548_865, code: 1_784_548_864 };
  app = await openSettings(network, '#models');
  await until(() => rows().length === 2);
  expect(rows()[0]?.textContent).toMatch(/book.*12,000 tokens of big · 1\.5 GB \(1\.8 GB in memory\)/s);
  expect(screen.queryByRole('button', { name: 'Upload book' })).toBeNull();
  await fireEvent.click(screen.getByRole('button', { name: 'Delete book' }));
  await fireEvent.click(screen.getByRole('button', { name: 'Delete' }));
  await until(() => rows().length === 1);
  expect(network.sent('POST', '/v1/context/delete')[0]?.body).toEqual({ name: 'book', store: false });
  await until(() => document.activeElement === screen.getByRole('button', { name: 'Delete code' }));
  await fireEvent.click(screen.getByRole('button', { name: 'Delete code' }));
  await fireEvent.click(screen.getByRole('button', { name: 'Delete' }));
  await until(() => document.activeElement?.querySelector('[data-testid="saved-contexts-empty"]') != null);
});

it('the last conversation of a loaded tier is saved, and loaded again', async () => {
  here = { book: 1 };
  const loaded = STATUS.tiers.map(
    (tier) => ({ ...tier, state: tier.id === 'fast' ? 'ready' : 'stopped' }) as const,
  );
  app = await openSettings(network, '#models', { ...STATUS, tiers: loaded });
  await until(() => rows().length === 1);
  const name = await screen.findByTestId<HTMLInputElement>('save-context-name');
  await fireEvent.input(name, { target: { value: ' new one ' } });
  await fireEvent.click(screen.getByTestId('save-context'));
  await until(() => rows().length === 2);
  const sent = () => network.sent('POST', '/v1/context/save').map(({ body }) => body);
  expect(sent()).toEqual([{ name: 'new one', model: 'fast', replace: false }]);
  expect(name.value).toBe('');
  await fireEvent.input(name, { target: { value: 'book' } });
  await fireEvent.click(screen.getByTestId('save-context'));
  await fireEvent.click(await screen.findByRole('button', { name: 'Replace' }));
  await until(() => sent().length === 3);
  expect(sent().slice(1)).toEqual([
    { name: 'book', model: 'fast', replace: false },
    { name: 'book', model: 'fast', replace: true },
  ]);
  await until(() => name.value === '');
  await until(() => !screen.getByRole<HTMLButtonElement>('button', { name: 'Load book' }).disabled);
  await fireEvent.click(screen.getByRole('button', { name: 'Load book' }));
  await screen.findByText(/^Loaded\./);
  expect(network.sent('POST', '/v1/context/load')[0]?.body).toEqual({ name: 'book' });
});

it('a compact context says so, and the format of new ones is chosen', async () => {
  here = { book: 1 };
  form = 'compact';
  app = await openSettings(network, '#models');
  await until(() => rows().length === 1);
  expect(rows()[0]?.textContent).toMatch(/12,000 tokens of big · Compact, 1\.5 GB \(1\.8 GB in memory\)/);
  await until(() => screen.queryByLabelText('Format') !== null);
  const format = screen.getByLabelText<HTMLSelectElement>('Format');
  expect(format.value).toBe('exact');
  await fireEvent.change(format, { target: { value: 'compact' } });
  await until(() => network.sent('PATCH', '/tierbar/v1/config').length === 1);
  expect(network.sent('PATCH', '/tierbar/v1/config')[0]?.body).toEqual({ contexts: { form: 'compact' } });
  expect(format.value).toBe('compact');
});

it('without any, the card says how to save one', async () => {
  app = await openSettings(network, '#models');
  await until(() => screen.queryByTestId('saved-contexts-empty') !== null);
  expect(screen.getByTestId('saved-contexts-empty').textContent).toContain('save its conversation here');
  expect(network.sent('GET', '/v1/context/store')).toEqual([]);
});

it('contexts are uploaded, replaced after a question, and deleted from the store', async () => {
  contexts = STORE;
  here = { book: 2 };
  stored = { book: 1, old: 1 };
  app = await openSettings(network, '#models');
  await until(() => rows().length === 2);
  expect(rows()[0]?.textContent).toContain('A different version is in the store');
  expect(rows()[1]?.textContent).toContain('Only in the store');
  conflicts = true;
  await fireEvent.click(screen.getByRole('button', { name: 'Upload book' }));
  await until(() => screen.queryByRole('button', { name: 'Replace' }) !== null);
  await fireEvent.click(screen.getByRole('button', { name: 'Replace' }));
  await until(() => rows()[0]?.textContent?.includes('Also in the store') === true);
  expect(network.sent('POST', '/v1/context/upload').map(({ body }) => body)).toEqual([
    { name: 'book', replace: false },
    { name: 'book', replace: true },
  ]);
  await fireEvent.click(screen.getByRole('button', { name: 'Download old' }));
  await until(() => screen.queryByText(/was changed/) !== null);
  await fireEvent.click(screen.getByRole('button', { name: 'Delete old' }));
  await fireEvent.click(screen.getByRole('button', { name: 'Delete' }));
  await until(() => rows().length === 1);
  expect(network.sent('POST', '/v1/context/delete')[0]?.body).toEqual({ name: 'old', store: true });
});

it('deleting a context leaves those that are only in the store', async () => {
  contexts = STORE;
  here = { book: 2 };
  stored = { old: 1 };
  app = await openSettings(network, '#models');
  await until(() => rows().length === 2);
  expect(network.sent('GET', '/v1/context')).toHaveLength(1);
  expect(network.sent('GET', '/v1/context/store')).toHaveLength(1);
  await fireEvent.click(screen.getByRole('button', { name: 'Delete book' }));
  await fireEvent.click(screen.getByRole('button', { name: 'Delete' }));
  await until(() => document.activeElement === screen.getByRole('button', { name: 'Delete old' }));
  expect(rows()).toHaveLength(1);
});

it('a bucket is set up with its key and a passphrase', async () => {
  app = await openSettings(network, '#models');
  await until(() => screen.queryByTestId('context-store') !== null);
  await fireEvent.click(screen.getByTestId('context-store'));
  await fireEvent.change(screen.getByLabelText('Keep copies in'), { target: { value: 'bucket' } });
  const type = (label: string | RegExp, value: string) =>
    fireEvent.input(screen.getByLabelText(label), { target: { value } });
  await type(/^Bucket/, 'mine/tierbar');
  await type('Server', 'https://s3.example.com');
  await type('Access key ID', 'AKIA');
  await type('Secret access key', 'hidden');
  const save = screen.getByTestId<HTMLButtonElement>('context-store-save');
  expect(save.disabled).toBe(true);
  await type('Passphrase', 'correct horse battery');
  expect(save.disabled).toBe(false);
  await fireEvent.click(save);
  await until(() => screen.queryByTestId('context-store-dialog') === null);
  expect(network.sent('PATCH', '/tierbar/v1/config')[0]?.body).toEqual({
    contexts: {
      store: 's3://mine/tierbar',
      endpoint: 'https://s3.example.com',
      region: '',
      access_key: 'AKIA',
    },
  });
  expect(network.sent('PUT', '/tierbar/v1/secrets/context-store')[0]?.body).toEqual({ value: 'hidden' });
  expect(network.sent('PUT', '/tierbar/v1/secrets/context-passphrase')[0]?.body).toEqual({
    value: 'correct horse battery',
  });
  await until(() => screen.queryByText('s3://mine/tierbar') !== null);
});

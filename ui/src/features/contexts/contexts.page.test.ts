import { fireEvent, screen } from '@testing-library/svelte';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { App } from '../../lib/app';
import { browser } from '../../testing/browser';
import { Network, until } from '../../testing/host';
import { openSettings } from '../../testing/settings';

let network: Network;
let app: App;
let names: string[];

beforeEach(() => {
  browser();
  network = new Network();
  names = [];
  network.override = ({ path, body }) => {
    if (path === '/v1/context/delete') {
      names = names.filter((name) => name !== body.name);
      return Response.json({ name: body.name, deleted: true });
    }
    if (path === '/tierbar/v1/setup/answers') return Response.json({ answers: [] });
    if (path !== '/v1/context') return null;
    const data = names.map((name) => ({
      name,
      model: 'big',
      tokens: 12_000,
      bytes: 1_500_000_000,
      created: 1_784_548_865,
      kv_cache: 'f16',
    }));
    return Response.json({ object: 'list', data });
  };
});
afterEach(() => {
  app.feed.stop();
  location.hash = '';
});

it('saved contexts are listed with their size, and deleted', async () => {
  names = ['book', 'code'];
  app = await openSettings(network, '#models');
  await until(() => screen.queryAllByTestId('saved-context').length === 2);
  expect(screen.getAllByTestId('saved-context')[0]?.textContent).toMatch(
    /book.*12,000 tokens of big · 1\.5 GB/s,
  );
  await fireEvent.click(screen.getByRole('button', { name: 'Delete book' }));
  await fireEvent.click(screen.getByRole('button', { name: 'Delete' }));
  await until(() => screen.queryAllByTestId('saved-context').length === 1);
  expect(network.sent('POST', '/v1/context/delete')[0]?.body).toEqual({ name: 'book' });
});

it('without any, nothing is shown', async () => {
  app = await openSettings(network, '#models');
  await until(() => network.sent('GET', '/v1/context').length === 1);
  expect(screen.queryByRole('heading', { name: 'Saved Contexts' })).toBeNull();
});

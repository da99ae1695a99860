import { fireEvent, screen } from '@testing-library/svelte';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { App } from '../../lib/app';
import type { Notifications } from '../../platform';
import { browser } from '../../testing/browser';
import { configured } from '../../testing/config';
import { Network, STATUS, until } from '../../testing/host';
import { openSettings } from '../../testing/settings';
import { Shown } from './shown';

let network: Network;
let app: App;
let config = configured();
let shown: string[];
let permission: 'default' | 'granted' | 'denied';

const notifications: Notifications = {
  permission: async () => permission,
  ask: async () => permission,
  show: (title, body, tag) => shown.push(`${tag} ${title}: ${body}`),
};

beforeEach(() => {
  browser();
  network = new Network();
  shown = [];
  permission = 'granted';
  config = configured();
  network.override = ({ method, path, body }) => {
    if (!path.startsWith('/tierbar/v1/config')) return null;
    if (method === 'PATCH')
      config = { ...config, notifications: { ...config.notifications, ...body.notifications } };
    return Response.json({ config, path: '/data/config.toml' });
  };
});
afterEach(() => {
  app.feed.stop();
  location.hash = '';
});

async function open(platform: Partial<App['platform']> = { notifications }) {
  app = await openSettings(
    network,
    '#general',
    {
      ...STATUS,
      notifications: [{ id: 4, title: 'Old', body: 'before this page' }],
    },
    platform,
  );
}

it('shows each new notification once, and none from before the page', async () => {
  await open();
  const old = { id: 4, title: 'Old', body: 'before this page' };
  const unload = { id: 5, title: 'Model unloaded', body: 'unloaded fast on quit, freed 68 MiB' };
  await screen.findByTestId('settings-notify-unloads');
  network.eventStreams[0]?.event('change', { notifications: [old, unload] });
  await until(() => shown.length > 0);
  network.eventStreams[0]?.event('change', { swap: { used_bytes: 7, growth_bytes_per_minute: 0 } });
  await until(() => app.feed.status?.swap.used_bytes === 7);
  expect(shown).toEqual(['tierbar-5 Model unloaded: Unloaded fast on quit, freed 68 MB.']);
});

it('turns them on one by one, and says that the browser refuses them', async () => {
  permission = 'default';
  await open();
  const row = await screen.findByTestId('settings-notify-downloads');
  expect(row.getAttribute('aria-checked')).toBe('false');
  expect(screen.queryByTestId('notifications-denied')).toBeNull();
  permission = 'denied';
  await fireEvent.click(row);
  await until(() => row.getAttribute('aria-checked') === 'true');
  expect(network.sent('PATCH', '/tierbar/v1/config')[0]?.body).toEqual({
    notifications: { downloads: true },
  });
  expect(screen.getByTestId('notifications-denied').textContent).toContain('This browser does not show');
});

it('says that the system refuses them, until it does not', async () => {
  permission = 'denied';
  config = configured({ notifications: { ...config.notifications, memory: true } });
  await open({ notifications, loginItem: { get: async () => false, set: async () => false } });
  const denied = await screen.findByTestId('notifications-denied');
  expect(denied.textContent).toContain('This desktop does not show notifications');
  permission = 'granted';
  await fireEvent.focus(window);
  await until(() => screen.queryByTestId('notifications-denied') === null);
});

it('shows no note on a refusal while notifications are off', async () => {
  permission = 'denied';
  await open();
  await screen.findByTestId('settings-notify-downloads');
  expect(screen.queryByTestId('notifications-denied')).toBeNull();
});

it('is absent where nothing can be shown', async () => {
  await open({});
  await screen.findByTestId('settings-hf-token');
  expect(screen.queryByTestId('settings-notify-downloads')).toBeNull();
});

it('begins anew with a host that has restarted', () => {
  const seen = new Shown();
  const at = (...ids: number[]) =>
    seen.next(ids.map((id) => ({ id, title: '', body: '' }))).map(({ id }) => id);
  expect([at(7, 8), at(7, 8, 9), at(), at(1)]).toEqual([[], [9], [], [1]]);
});

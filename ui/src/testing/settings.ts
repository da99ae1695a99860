import { render } from '@testing-library/svelte';
import Root from '../features/settings/Root.svelte';
import { type App, startApp } from '../lib/app';
import type { Platform } from '../platform';
import type { Status } from '../platform/openapi';
import { type Network, STATUS, until } from './host';

/** Opens the settings at a section, connected to a host of this status. */
export async function openSettings(
  network: Network,
  section: string,
  status: Status = STATUS,
  platform: Partial<Platform> = {},
): Promise<App> {
  location.hash = section;
  const app = startApp({
    connection: async () => ({ url: '' }),
    openSettings: async () => {},
    openChat: async () => {},
    ...platform,
  });
  render(Root, { app });
  await until(() => network.eventStreams.length === 1);
  network.eventStreams[0]?.event('snapshot', status);
  return app;
}

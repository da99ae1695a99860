import { createContext } from 'svelte';
import { Chains } from '../features/chains/chains.svelte';
import { Feed } from '../features/monitor/feed.svelte';
import type { Platform } from '../platform';
import { Api } from './http';

/** What every part of a page shares. Made once per page, before the first component. */
export interface App {
  platform: Platform;
  api: Api;
  feed: Feed;
  chains: Chains;
}

export const [useApp, provideApp] = createContext<App>();

export function startApp(platform: Platform): App {
  const api = new Api(() => platform.connection());
  const feed = new Feed(api);
  api.onUnauthorized = () => feed.lock();
  document.addEventListener('visibilitychange', () => {
    if (!document.hidden) feed.retryNow();
  });
  feed.start();
  return { platform, api, feed, chains: new Chains(api) };
}

import { createContext } from 'svelte';
import { Chains } from '../features/chains/chains.svelte';
import { Feed } from '../features/monitor/feed.svelte';
import type { Platform } from '../platform';
import { Api, type ApiError, asApiError } from './http';
import { takeCode } from './signInLink';

/** What every part of a page shares. Made once per page, before the first component. */
export interface App {
  platform: Platform;
  api: Api;
  feed: Feed;
  chains: Chains;
  /** Why the link that opened the page did not sign it in. */
  linkError: ApiError | null;
}

export const [useApp, provideApp] = createContext<App>();

export function startApp(platform: Platform): App {
  const api = new Api(() => platform.connection());
  const feed = new Feed(api);
  api.onUnauthorized = () => feed.lock();
  document.addEventListener('visibilitychange', () => {
    if (!document.hidden) feed.retryNow();
  });
  const app: App = { platform, api, feed, chains: new Chains(api), linkError: null };
  const code = takeCode();
  if (code === null) feed.start();
  else {
    api
      .signIn(code)
      .catch((cause) => {
        app.linkError = asApiError(cause);
      })
      .finally(() => feed.start());
  }
  return app;
}

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Api } from '../../lib/http';
import { Network, refusal, STATUS, until } from '../../testing/host';
import { Feed } from './feed.svelte';

let network: Network;
let feed: Feed;
beforeEach(() => {
  network = new Network();
  const api = new Api(async () => ({ url: '' }));
  feed = new Feed(api);
  api.onUnauthorized = () => feed.lock();
});
afterEach(() => feed.stop());

describe('the status feed', () => {
  it('is live with the first snapshot and follows the changes', async () => {
    feed.start();
    await until(() => network.eventStreams.length === 1);
    expect(feed.link).toBe('connecting');
    network.eventStreams[0]?.event('snapshot', STATUS);
    await until(() => feed.link === 'live');
    network.eventStreams[0]?.event('change', { version: '0.2.0' });
    await until(() => feed.status?.version === '0.2.0');
    expect(feed.tier('primary')?.state).toBe('ready');
  });

  it('keeps the last status while the link is lost, and reconnects', async () => {
    const healed = vi.fn();
    feed.onHealed = healed;
    feed.start();
    await until(() => network.eventStreams.length === 1);
    network.eventStreams[0]?.event('snapshot', STATUS);
    await until(() => feed.link === 'live');
    network.eventStreams[0]?.breakOff();
    await until(() => feed.link === 'lost');
    expect(feed.problem).toBe('Tierbar closed the connection.');
    expect(feed.status).toEqual(STATUS);
    feed.retryNow();
    await until(() => network.eventStreams.length === 2);
    expect(healed).not.toHaveBeenCalled();
    network.eventStreams[1]?.event('snapshot', { ...STATUS, version: '0.3.0' });
    await until(() => feed.link === 'live');
    expect(feed.problem).toBeNull();
    expect(healed).toHaveBeenCalledOnce();
  });

  it('announces changes of the chats, and each connection as one', async () => {
    const changed = vi.fn();
    feed.onChats = changed;
    feed.start();
    await until(() => network.eventStreams.length === 1);
    network.eventStreams[0]?.event('snapshot', STATUS);
    await until(() => feed.link === 'live');
    expect(changed).toHaveBeenCalledTimes(1);
    network.eventStreams[0]?.event('chats', { revision: 1 });
    await until(() => changed.mock.calls.length === 2);
    expect(feed.status).toEqual(STATUS);
  });

  it('waits twice as long after each failure, up to a limit', async () => {
    vi.useFakeTimers();
    try {
      network.override = () => refusal(503, 'shutting_down', 'The host is shutting down');
      feed.start();
      const tries = () => network.requests.length;
      const waits: number[] = [];
      for (let n = 0; n < 6; n += 1) {
        await vi.advanceTimersByTimeAsync(0);
        const before = tries();
        let waited = 0;
        while (tries() === before && waited < 60_000) {
          await vi.advanceTimersByTimeAsync(100);
          waited += 100;
        }
        waits.push(waited);
      }
      expect(waits).toEqual([500, 1000, 2000, 4000, 8000, 8000]);
      expect(feed.problem).toBe('The host is shutting down.');
    } finally {
      vi.useRealTimers();
    }
  });

  it('stops until there is a token, and then starts again', async () => {
    network.override = () => refusal(401, 'unauthorized', 'This needs the token.');
    feed.start();
    await until(() => feed.link === 'locked');
    network.override = () => null;
    feed.start();
    await until(() => network.eventStreams.length === 1);
    expect(network.requests).toHaveLength(2);
    network.eventStreams[0]?.event('snapshot', STATUS);
    await until(() => feed.link === 'live');
  });
});

describe('readings that hardly change', () => {
  const GIB = 2 ** 30;
  const ram = (available: number) => ({ ...STATUS.ram, available_bytes: available * GIB });
  const drawn = () => (feed.status?.ram.available_bytes ?? 0) / GIB;

  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => vi.useRealTimers());

  async function start() {
    feed.start();
    await vi.waitUntil(() => network.eventStreams.length === 1);
    await send('snapshot', { ...STATUS, ram: ram(8) });
  }

  async function send(event: string, value: unknown) {
    network.eventStreams[0]?.event(event, value);
    await vi.advanceTimersByTimeAsync(0);
  }

  it('are drawn together every few seconds, and others at once', async () => {
    await start();
    await send('change', { ram: ram(8.01) });
    await send('change', { ram: ram(8.02) });
    expect(drawn()).toBe(8);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(drawn()).toBe(8.02);
    await send('change', { ram: ram(8.03) });
    await send('change', { speed: { ...STATUS.speed, decode_tokens_per_second: 3 } });
    expect(feed.status?.speed.decode_tokens_per_second).toBe(3);
    expect(drawn()).toBe(8.03);
    await send('change', { ram: ram(6) });
    expect(drawn()).toBe(6);
  });

  it('are not drawn while the page is hidden, and at once when it is seen', async () => {
    const hidden = vi.spyOn(document, 'hidden', 'get').mockReturnValue(true);
    await start();
    await send('change', { ram: ram(8.01) });
    await vi.advanceTimersByTimeAsync(60_000);
    expect(drawn()).toBe(8);
    hidden.mockReturnValue(false);
    feed.retryNow();
    expect(drawn()).toBe(8.01);
  });
});

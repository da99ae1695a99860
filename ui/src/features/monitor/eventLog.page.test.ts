import { fireEvent, screen } from '@testing-library/svelte';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { App } from '../../lib/app';
import type { Entry, Kind } from '../../platform/openapi';
import { browser } from '../../testing/browser';
import { Network, refusal, STATUS, until } from '../../testing/host';
import { openSettings } from '../../testing/settings';
import { PAGE } from './eventLog.svelte';

let network: Network;
let app: App;

beforeEach(() => {
  browser();
  network = new Network();
});
afterEach(() => {
  app.feed.stop();
  location.hash = '';
});

function entry(id: number, tier: string | null, kind: Kind, sentence: string): Entry {
  return { id, at_ms: Date.now(), kind, tier, model: null, sentence };
}

async function open() {
  app = await openSettings(network, '#monitor');
}

const lines = () =>
  [...screen.getByTestId('log').querySelectorAll('li')].map((line) =>
    line.textContent?.replace(/\s+/g, ' ').trim(),
  );

it('shows events live, newest first, with their kind', async () => {
  network.log = [entry(1, 'fast', 'load', 'fast loads smol for a request: 1.0 GiB planned')];
  await open();
  await screen.findByTestId('log');
  expect(lines()).toHaveLength(1);
  network.eventStreams[0]?.event(
    'log',
    entry(2, 'fast', 'crash', 'the worker of fast was killed by signal 9'),
  );
  await until(() => lines().length === 2);
  expect(lines()[0]).toMatch(/^\d\d:\d\d:\d\d Crash The worker of Fast was killed by signal 9\.$/);
  expect(lines()[1]).toMatch(/Load Fast loads smol for a request: 1.0 GB planned\.$/);
});

it('shows the events of one tier when chosen', async () => {
  network.log = [
    entry(2, 'primary', 'ready', 'primary is ready'),
    entry(1, 'fast', 'ready', 'fast is ready'),
  ];
  await open();
  await until(() => screen.queryByTestId('log') && lines().length === 2);
  await fireEvent.change(screen.getByTestId('log-tier'), { target: { value: 'fast' } });
  await until(() => lines().length === 1);
  network.eventStreams[0]?.event('log', entry(3, 'primary', 'unload', 'primary was ended'));
  network.eventStreams[0]?.event('log', entry(4, 'fast', 'unload', 'fast was ended'));
  await until(() => lines().length === 2);
  expect(lines()[0]).toContain('Fast was ended.');
});

it('shows the events of a kind and with some words', async () => {
  network.log = [
    entry(3, 'fast', 'unload', 'unloaded fast on quit, freed 68 MiB'),
    entry(2, 'heavy', 'unload', 'heavy was unloaded to make room for fast; freed 3.0 GiB'),
    entry(1, 'fast', 'ready', 'fast is ready'),
  ];
  await open();
  await until(() => screen.queryByTestId('log') && lines().length === 3);
  await fireEvent.change(screen.getByTestId('log-kind'), { target: { value: 'unload' } });
  await until(() => lines().length === 2);
  expect(lines()[0]).toMatch(/Unloaded Fast on quit, freed 68 MB\.$/);
  await fireEvent.input(screen.getByTestId('log-find'), { target: { value: 'Room Deep ' } });
  await until(() => lines().length === 1);
  expect(lines()[0]).toContain('Deep was unloaded to make room for Fast; freed 3.0 GB.');
  network.eventStreams[0]?.event('log', entry(4, 'fast', 'unload', 'unloaded fast on quit'));
  network.eventStreams[0]?.event('log', entry(5, 'fast', 'unload', 'fast made room for heavy'));
  await until(() => lines().length === 2);
  expect(lines()[0]).toContain('Fast made room for Deep.');
  await fireEvent.input(screen.getByTestId('log-find'), { target: { value: 'tea' } });
  expect((await screen.findByTestId('log-empty')).textContent).toContain('No events match.');
});

it('shows that there are no events, or why they cannot be read', async () => {
  network.override = ({ path }) =>
    path.startsWith('/tierbar/v1/log') ? refusal(507, 'storage', 'the file is damaged') : null;
  await open();
  expect((await screen.findByTestId('log-problem')).textContent).toContain('The file is damaged.');
  expect(screen.queryByTestId('log-empty')).toBeNull();
  network.override = () => null;
  await fireEvent.click(screen.getByText('Try Again'));
  expect((await screen.findByTestId('log-empty')).textContent).toContain('No events yet.');
  expect(screen.queryByTestId('log-problem')).toBeNull();
});

it('reads missed entries after a lost link, and older ones on request', async () => {
  await open();
  await screen.findByTestId('log-empty');
  network.eventStreams[0]?.breakOff();
  await until(() => app.feed.link === 'lost');
  network.log = Array.from({ length: PAGE + 1 }, (_, n) =>
    entry(PAGE + 1 - n, 'fast', 'load', `load ${PAGE + 1 - n}`),
  );
  app.feed.retryNow();
  await until(() => network.eventStreams.length === 2);
  network.eventStreams[1]?.event('snapshot', STATUS);
  await until(() => screen.queryByTestId('log') && lines().length === PAGE);
  await fireEvent.click(screen.getByTestId('log-older'));
  await until(() => lines().length === PAGE + 1);
  expect(screen.queryByTestId('log-older')).toBeNull();
});

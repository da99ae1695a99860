import { fireEvent, screen } from '@testing-library/svelte';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { App } from '../../lib/app';
import type { History, Kind } from '../../platform/openapi';
import { browser } from '../../testing/browser';
import { Network, refusal, until } from '../../testing/host';
import { openSettings } from '../../testing/settings';

// biome-ignore lint/suspicious/noExplicitAny: uPlot's options, as given.
const drawn = vi.hoisted(() => ({ updates: 0, options: [] as any[] }));
vi.mock('uplot', () => ({
  default: class {
    static paths = {};
    constructor(options: unknown) {
      drawn.options.push(options);
    }
    width = 0;
    setData() {
      drawn.updates += 1;
    }
    setSize() {}
    setCursor() {}
    valToPos() {
      return 0;
    }
    redraw() {}
    destroy() {}
  },
}));

const GIB = 2 ** 30;
let network: Network;
let app: App;

beforeEach(() => {
  browser();
  drawn.updates = 0;
  drawn.options = [];
  network = new Network();
});
afterEach(() => {
  app.feed.stop();
  location.hash = '';
  vi.useRealTimers();
  Object.defineProperty(document, 'hidden', { configurable: true, value: false });
});

/** Readings a second apart; the models take a GiB more at each. */
function history(from: number, count: number): History {
  const points = Array.from({ length: count }, (_, n) => ({
    at: from + n,
    samples: 1,
    ram_total_bytes: 16 * GIB,
    ram_used_bytes: { mean: (4 + n) * GIB, max: (4 + n) * GIB },
    models_bytes: { mean: n * GIB, max: n * GIB },
    swap_used_bytes: { mean: 0, max: 0 },
  }));
  return { step_seconds: 1, points };
}

async function open() {
  app = await openSettings(network, '#monitor');
}

const text = (testid: string) => screen.getByTestId(testid).textContent?.replace(/\s+/g, ' ').trim();
const reads = () => network.requests.filter(({ path }) => path.startsWith('/tierbar/v1/history'));
const cursor = () => screen.getByRole('slider', { name: 'Memory over time' });
function hide(hidden: boolean) {
  Object.defineProperty(document, 'hidden', { configurable: true, value: hidden });
  document.dispatchEvent(new Event('visibilitychange'));
}

it('says in words what memory was, and reads it out under the arrow keys', async () => {
  network.history = history(1_800_000_000, 4);
  await open();
  await screen.findByTestId('chart-memory');
  expect(text('chart-memory-summary')).toMatch(
    /^Models used 3 GB at most from \d\d:\d\d:\d\d on\. The dashed line is their budget, 12 GB\.$/,
  );
  expect(text('chart-memory-read')).toBe('Models 3 GB Other apps 4 GB Available 9 GB');
  await fireEvent.keyDown(cursor(), { key: 'ArrowLeft' });
  expect(cursor().getAttribute('aria-valuetext')).toMatch(
    /^\d\d:\d\d:02, Models 2 GB, Other apps 4 GB, Available 10 GB$/,
  );
  await fireEvent.keyDown(cursor(), { key: 'Home' });
  expect(cursor().getAttribute('aria-valuetext')).toContain('Models 0 B');
  await fireEvent.keyDown(cursor(), { key: 'ArrowLeft' });
  expect(cursor().getAttribute('aria-valuenow')).toBe('0');
  await fireEvent.keyDown(cursor(), { key: 'Escape' });
  expect(cursor().getAttribute('aria-valuetext')).toContain('Models 3 GB');
});

it('says since when there are readings, where they are younger than the span', async () => {
  network.history = history(1_800_000_000, 601);
  await open();
  await screen.findByTestId('chart-memory');
  expect(text('chart-swap-summary')).toBe('No swap was used in the last 10 minutes.');
  app.feed.stop();
  document.body.innerHTML = '';
  network.eventStreams = [];
  network.history = history(1_800_000_000, 300);
  await open();
  await screen.findByTestId('chart-memory');
  expect(text('chart-swap-summary')).toMatch(/^No swap was used from \d\d:\d\d:00 on\.$/);
});

it('ends with the step of the last reading, also where there is one alone', async () => {
  HTMLCanvasElement.prototype.getContext = () => ({}) as never;
  const now = Math.floor(Date.now() / 1000);
  network.history = { ...history(now - 1800, 1), step_seconds: 3600 };
  network.log = [
    {
      id: 1,
      at_ms: (now - 600) * 1000,
      kind: 'ready',
      tier: 'primary',
      model: 'smol',
      sentence: 'primary is ready',
    },
  ];
  await open();
  await until(() => drawn.options.length === 6);
  await fireEvent.click(screen.getByTestId('range-30d'));
  await until(() => screen.queryByTestId('timeline-primary')?.querySelector('button'));
  await until(() => drawn.options.length === 12);
  const { scales, series } = drawn.options.at(-1);
  expect(scales.x.range()).toEqual([now + 1800 - 30 * 86_400, now + 1800]);
  expect(series[1].points.show(null, 1, 0, 0)).toBe(true);
  expect(series[1].points.show(null, 1, 0, 1)).toBe(false);
});

it('shows another span when chosen, and why it cannot', async () => {
  network.history = history(1_800_000_000, 2);
  await open();
  await screen.findByTestId('chart-memory');
  network.history = { step_seconds: 3600, points: [] };
  await fireEvent.click(screen.getByTestId('range-30d'));
  await until(() => screen.queryByTestId('history-empty')?.textContent?.includes('No readings yet.'));
  expect(reads().at(-1)?.path).toContain('minutes=43200');
  network.override = ({ path }) =>
    path.startsWith('/tierbar/v1/history') ? refusal(507, 'storage', 'the file is damaged') : null;
  await fireEvent.click(screen.getByTestId('range-24h'));
  expect((await screen.findByTestId('history-problem')).textContent).toBe('The file is damaged.');
});

it('reads only what is new, and neither reads nor draws while the page is hidden', async () => {
  vi.useFakeTimers();
  HTMLCanvasElement.prototype.getContext = () => ({}) as never;
  network.history = history(1_800_000_000, 3);
  await open();
  await screen.findByTestId('chart-memory');
  await until(() => drawn.updates === 6);
  network.history = history(1_800_000_002, 2);
  await vi.advanceTimersByTimeAsync(15_000);
  await until(() => drawn.updates === 12);
  expect(reads().at(-1)?.path).toContain('since=1800000002');
  expect(cursor().getAttribute('aria-valuemax')).toBe('3');

  hide(true);
  const before = reads().length;
  await vi.advanceTimersByTimeAsync(60_000);
  expect(reads().length).toBe(before);
  expect(drawn.updates).toBe(12);
  hide(false);
  await until(() => drawn.updates > 12);
});

it('shows when tiers were loaded and why they left, by keyboard too', async () => {
  const now = Math.floor(Date.now() / 1000);
  network.history = history(now - 3, 4);
  const event = (id: number, ago: number, tier: string, kind: Kind, sentence: string) => ({
    id,
    at_ms: (now - ago) * 1000,
    kind,
    tier,
    model: 'smol',
    sentence,
  });
  network.log = [
    event(4, 60, 'primary', 'ready', 'primary is ready'),
    event(3, 100, 'fast', 'unload', 'fast was unloaded to make room for primary; freed 68 MiB'),
    event(2, 200, 'fast', 'ready', 'fast is ready'),
    event(1, 210, 'fast', 'load', 'fast is loading'),
  ];
  await open();
  await until(() => screen.queryByTestId('timeline-fast')?.querySelectorAll('button').length === 2);
  const [loading, loaded] = [...screen.getByTestId('timeline-fast').querySelectorAll('button')];
  const last = screen.getByTestId('timeline-primary').querySelector('button');
  expect([loading, loaded, last].map((span) => span?.tabIndex)).toEqual([-1, -1, 0]);
  expect(text('timeline-words')).toBe('Loading Loaded Answering');

  last?.focus();
  await until(() => text('timeline-words')?.startsWith('Everyday has been loaded since'));
  if (last) await fireEvent.keyDown(last, { key: 'ArrowUp' });
  await until(() => document.activeElement === loaded);
  expect(text('timeline-words')).toMatch(
    /^Fast was loaded from .* \(2 min\), with smol\. Fast was unloaded to make room for primary; freed 68 MB\.$/,
  );
  if (loaded) await fireEvent.keyDown(loaded, { key: 'ArrowLeft' });
  await until(() => document.activeElement === loading);
  expect(loading?.getAttribute('aria-label')).toContain('Fast was loading from');
});

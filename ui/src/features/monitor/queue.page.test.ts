import { fireEvent, screen, within } from '@testing-library/svelte';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { App } from '../../lib/app';
import type { ChainStatus, Gate } from '../../platform/openapi';
import { browser } from '../../testing/browser';
import { Network, refusal, STATUS, until } from '../../testing/host';
import { queued } from '../../testing/queue';
import { openSettings } from '../../testing/settings';

let network: Network;
let app: App;
let hidden: boolean;

beforeEach(() => {
  vi.useFakeTimers();
  browser();
  hidden = false;
  vi.spyOn(document, 'hidden', 'get').mockImplementation(() => hidden);
  network = new Network();
});
afterEach(() => {
  app.feed.stop();
  location.hash = '';
  vi.useRealTimers();
});

async function open() {
  app = await openSettings(network, '#monitor');
  await until(() => reads() > 0 && screen.queryByTestId('log-empty'));
}

/** How often the chains were read. */
const reads = () => network.sent('GET', '/tierbar/v1/chains').length;

/** Waits long enough for the next read. */
const later = (ms = 2500) => vi.advanceTimersByTimeAsync(ms);

function chain(gate: Gate, name = 'nightly'): ChainStatus {
  return {
    name,
    triage: false,
    steps: [
      { step: 'sonnet', server: 'api.example.com', ...gate },
      { step: 'fast' },
      { step: 'primary' },
      { step: 'queue' },
    ],
  };
}

const text = (testid: string) => screen.getByTestId(testid).textContent?.replace(/\s+/g, ' ').trim();

describe('without chains and queued requests', () => {
  it('both cards are hidden, and read again while the page is visible', async () => {
    network.jobs = [queued('a', { state: 'cancelled' })];
    await open();
    const first = reads();
    // Nothing goes on: they are read less often.
    await later();
    expect(reads()).toBe(first);
    await later(15_000);
    expect(reads()).toBeGreaterThan(first);
    for (const heading of ['Chains', 'Queue'])
      expect(screen.queryByRole('heading', { name: heading })).toBeNull();

    hidden = true;
    document.dispatchEvent(new Event('visibilitychange'));
    await later();
    const before = reads();
    await later(60_000);
    expect(reads()).toBe(before);

    network.chains = [chain({ gate: 'open' })];
    hidden = false;
    document.dispatchEvent(new Event('visibilitychange'));
    await until(() => screen.queryByTestId('chain-nightly'));
  });
});

describe('a chain', () => {
  it('says whether it triages messages first', async () => {
    network.chains = [{ ...chain({ gate: 'open' }), triage: true }, chain({ gate: 'open' }, 'plain')];
    await open();
    await until(() => screen.queryByTestId('chain-nightly'));
    expect(text('chain-nightly')).toContain('Triage: greetings and messages that need no reply go to');
    expect(text('chain-plain')).not.toContain('Triage');
  });

  it('shows its steps in order, each with its status', async () => {
    network.chains = [chain({ gate: 'cooling', for_ms: 24_000 })];
    network.jobs = [queued('a'), queued('b')];
    await open();
    const steps = within(await screen.findByTestId('chain-nightly')).getAllByRole('listitem');
    await until(() => steps[3]?.textContent?.includes('2 waiting'));
    expect(steps.map((step) => step.textContent?.replace(/\s+/g, ' ').trim())).toEqual([
      expect.stringMatching(/^1 sonnet Rate limited: next attempt in 2\d s$/),
      '2 Fast Loads on request',
      '3 Everyday Ready',
      '4 Queue Queues requests that no other step answers; 2 waiting',
    ]);
    network.eventStreams[0]?.event('change', { tiers: [{ ...STATUS.tiers[0], state: 'busy' }] });
    await until(() => text('chain-step-fast') === '2 Fast Answering');
    expect(text('chain-step-primary')).toBe('3 Everyday Removed');
  });

  it('counts down between two reads, and follows the next one', async () => {
    network.chains = [chain({ gate: 'cooling', for_ms: 24_000 })];
    await open();
    await screen.findByTestId('chain-nightly');
    // Reads fail from here on: only the time changes.
    network.override = ({ path }) => (path.endsWith('/chains') ? refusal(500, 'internal', 'broken') : null);
    await later();
    await later(10_000);
    expect(text('chain-step-sonnet')).toMatch(/Rate limited: next attempt in 1[12] s$/);
    await later(15_000);
    expect(text('chain-step-sonnet')).toBe('1 sonnet Available');

    network.chains = [chain({ gate: 'refused', for_ms: 900_000 })];
    network.override = () => null;
    await later();
    expect(text('chain-step-sonnet')).toContain('tierbar secret set api.example.com');
    expect(screen.getByTestId('chain-step-sonnet').dataset.tone).toBe('danger');
  });

  it('is one of at most 50 shown', async () => {
    network.chains = Array.from({ length: 53 }, (_, n) => chain({ gate: 'open' }, `c${n}`));
    await open();
    await screen.findByTestId('chain-c49');
    expect(screen.queryByTestId('chain-c50')).toBeNull();
    expect(screen.getByTestId('chains').textContent).toContain('and 3 more');
  });
});

describe('the queue', () => {
  const rows = () => screen.getAllByTestId('queued').map((row) => row.dataset.state);

  it('lists running, waiting and failed requests, and counts finished ones', async () => {
    network.jobs = [
      queued('a', { state: 'done' }),
      queued('b', { state: 'failed', reason: 'there is no model "x"', status: 404, ended_ms: Date.now() }),
      queued('c', { attempts: 2, reason: 'connection refused by api.example.com' }),
      queued('d', { state: 'running', attempts: 1, path: '/v1/embeddings' }),
      queued('e', { state: 'cancelled' }),
    ];
    await open();
    await screen.findByTestId('queue');
    expect(text('queue-counts')).toBe('1 running, 1 waiting, 1 done, 1 failed');
    expect(rows()).toEqual(['running', 'waiting', 'failed']);
    const [running, waiting, failed] = screen.getAllByTestId('queued') as HTMLElement[];
    expect(running?.textContent).toMatch(/Running\s*\/v1\/embeddings.*attempt 1 of 300/);
    expect(waiting?.textContent).toContain('Last attempt: connection refused by api.example.com.');
    expect(failed?.textContent).toContain('There is no model "x".');
    // The card follows without a click.
    network.jobs = [queued('a', { state: 'done' })];
    await later();
    expect(screen.queryByTestId('queue')).toBeNull();
    expect(text('queue-counts')).toBe('1 done');
  });

  it('cancels a request after confirmation, and removes a failed one', async () => {
    network.jobs = [queued('a'), queued('b', { state: 'failed', ended_ms: Date.now() })];
    await open();
    await screen.findByTestId('queue');
    const button = (n: number) => screen.getAllByTestId('queue-remove')[n] as HTMLElement;
    await fireEvent.click(button(0));
    expect(screen.getByRole('dialog').textContent).toContain('It will not be answered');
    await fireEvent.click(screen.getByText('Keep'));
    expect(network.sent('DELETE', '/v1/queue/a?keep=ended')).toHaveLength(0);
    await fireEvent.click(button(0));
    await fireEvent.click(screen.getByTestId('confirm'));
    await until(() => screen.getAllByTestId('queued').length === 1);
    expect(network.sent('DELETE', '/v1/queue/a?keep=ended')).toHaveLength(1);
    expect(network.jobs[0]?.state).toBe('cancelled');

    expect(button(0).textContent?.trim()).toBe('Remove');
    await fireEvent.click(button(0));
    await fireEvent.click(screen.getByTestId('confirm'));
    await until(() => network.jobs.length === 1 && !screen.queryByTestId('queue-counts'));
  });

  it('shows why a request could not be canceled', async () => {
    network.jobs = [queued('a')];
    await open();
    await screen.findByTestId('queue');
    network.override = ({ method }) =>
      method === 'DELETE' ? refusal(507, 'storage', 'the disk is full') : null;
    await fireEvent.click(screen.getByTestId('queue-remove'));
    await fireEvent.click(screen.getByTestId('confirm'));
    await until(() => screen.queryByTestId('queue-problem')?.textContent === 'The disk is full.');
    await later();
    expect(text('queue-problem')).toBe('The disk is full.');
    expect(rows()).toEqual(['waiting']);
  });

  it('shows some requests of each state, and how many more there are', async () => {
    const many = (count: number, state: 'waiting' | 'failed') =>
      Array.from({ length: count }, (_, n) => queued(`${state}${n}`, { state }));
    network.jobs = [...many(200, 'waiting'), ...many(12, 'failed')];
    await open();
    await screen.findByTestId('queue');
    expect(rows().length).toBeLessThanOrEqual(50);
    expect(rows()).toContain('failed');
    expect(screen.getByTestId('queue-more').textContent).toContain(`and ${212 - rows().length} more`);
  });
});

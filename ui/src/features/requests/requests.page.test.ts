import { fireEvent, screen } from '@testing-library/svelte';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { App } from '../../lib/app';
import type { RequestRecord } from '../../platform/openapi';
import { browser } from '../../testing/browser';
import { Network, refusal, until } from '../../testing/host';
import { openSettings } from '../../testing/settings';

let network: Network;
let app: App;

beforeEach(() => {
  browser();
  network = new Network();
});
afterEach(() => {
  app.feed.stop();
  location.hash = '';
  vi.useRealTimers();
});

function request(id: number, parts: Partial<RequestRecord> = {}): RequestRecord {
  return {
    id,
    at_ms: Date.now(),
    path: '/v1/chat/completions',
    client: null,
    tier: 'fast',
    model: 'smol',
    prompt_tokens: 1812,
    completion_tokens: 64,
    waited_ms: 40,
    first_token_ms: 1730,
    duration_ms: 6200,
    outcome: 'answered',
    code: null,
    ...parts,
  };
}

async function open() {
  app = await openSettings(network, '#monitor');
}

const rows = () =>
  [...screen.getByTestId('requests').querySelectorAll('tbody tr')].map((row) =>
    [...row.children].slice(1).map((cell) => cell.textContent?.replace(/\s+/g, ' ').trim()),
  );

it('shows the client, the tier, the tokens, the times and the end', async () => {
  network.recent = [
    request(3, { path: '/v1/messages', client: 'phone' }),
    request(2, {
      path: '/api/chat',
      outcome: 'failed',
      code: 'over_budget',
      tier: null,
      prompt_tokens: null,
    }),
    request(1, { path: '/tierbar/v1/chats/{id}/turns', outcome: 'cancelled', first_token_ms: null }),
  ];
  await open();
  await screen.findByTestId('requests');
  expect(rows()).toEqual([
    ['phone Anthropic', 'Fast', 'Answered', '1,812 / 64', '40 ms', '1.7 s', '6.2 s'],
    ['Ollama', '–', 'Over budget', '– / 64', '40 ms', '1.7 s', '6.2 s'],
    ['Chat', 'Fast', 'Canceled', '1,812 / 64', '40 ms', '–', '6.2 s'],
  ]);
});

it('reads only new requests, and all of them from a host that has restarted', async () => {
  vi.useFakeTimers();
  network.recent = [request(7)];
  await open();
  await until(() => screen.queryByTestId('requests') && rows().length === 1);
  network.recent = [request(8, { tier: 'heavy' }), request(7)];
  await vi.advanceTimersByTimeAsync(15_000);
  await until(() => rows().length === 2);
  expect(rows()[0]?.[1]).toBe('Deep');
  expect(network.requests.findLast(({ path }) => path.startsWith('/tierbar/v1/requests'))?.path).toContain(
    'after=7',
  );

  network.recent = [request(1, { tier: 'primary' })];
  network.eventStreams[0]?.breakOff();
  await until(() => app.feed.link === 'lost');
  await vi.advanceTimersByTimeAsync(15_000);
  await until(() => screen.queryByTestId('requests') && rows().length === 1);
  expect(rows()[0]?.[1]).toBe('Everyday');
});

it('shows the newest first, and more on request', async () => {
  network.recent = Array.from({ length: 30 }, (_, n) => request(30 - n));
  await open();
  await screen.findByTestId('requests');
  expect(rows()).toHaveLength(20);
  await fireEvent.click(screen.getByTestId('requests-more'));
  expect(rows()).toHaveLength(30);
  expect(screen.queryByTestId('requests-more')).toBeNull();
});

it('shows that there are none, or why they cannot be read', async () => {
  vi.useFakeTimers();
  network.override = ({ path }) =>
    path.startsWith('/tierbar/v1/requests') ? refusal(500, 'internal', 'it broke') : null;
  await open();
  await until(() => screen.queryByTestId('requests-problem')?.textContent === 'It broke.');
  network.override = () => null;
  await vi.advanceTimersByTimeAsync(15_000);
  await until(() => screen.queryByTestId('requests-empty')?.textContent?.includes('No requests yet.'));
});

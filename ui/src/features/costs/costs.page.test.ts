import { screen } from '@testing-library/svelte';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { App } from '../../lib/app';
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
});

async function open() {
  app = await openSettings(network, '#monitor');
  await until(() => network.requests.some(({ path }) => path.startsWith('/tierbar/v1/costs')));
}

function spent(answers: number, prompt: number, completion: number, saved: number) {
  return { answers, prompt_tokens: prompt, completion_tokens: completion, saved_tokens: saved };
}

it('says what tasks have kept from a cloud and what that took here', async () => {
  network.costs = {
    days: [
      { day: '2026-11-22', tasks: { triage: spent(2, 900, 40, 300), compress: spent(1, 4000, 700, 3200) } },
      { day: '2026-11-21', tasks: { triage: spent(1, 100, 2, 90) } },
    ],
    total: spent(4, 5000, 742, 3590),
  };
  await open();
  expect((await screen.findByTestId('costs')).textContent).toBe(
    'On 2 days, tasks answered 4 texts here. About 3,590 tokens didn’t go to a cloud.' +
      'This computer read 5,000 tokens and generated 742 for it.',
  );
  const rows = [...document.querySelectorAll('dl.numeric div')].map((row) => row.textContent);
  expect(rows).toContain('Compress1 text, 3,200 tokens saved');
  expect(rows).toContain('Triage3 texts, 390 tokens saved');
});

it('is hidden until a task has run, and says why it cannot be read', async () => {
  await open();
  await screen.findByTestId('diagnose');
  expect(screen.queryByText('Tokens Saved')).toBeNull();
  app.feed.stop();
  network.override = ({ path }) =>
    path.startsWith('/tierbar/v1/costs') ? refusal(507, 'storage', 'the file is damaged') : null;
  document.body.replaceChildren();
  network.eventStreams = [];
  await open();
  expect((await screen.findByTestId('costs-problem')).textContent).toBe('The file is damaged.');
});

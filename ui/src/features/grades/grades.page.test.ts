import { fireEvent, screen } from '@testing-library/svelte';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { App } from '../../lib/app';
import type { GradeReport } from '../../platform/openapi';
import { browser } from '../../testing/browser';
import { Network, until } from '../../testing/host';
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

const counts = (good: number, bad: number) => ({ good, bad });
const none = counts(0, 0);

const REPORT: GradeReport = {
  counts: counts(3, 22),
  share: { good: 0.12, low: 0.042, high: 0.3 },
  groups: [
    {
      model: 'small-Q4_K_M',
      tier: 'fast',
      quant: 'Q4_K_M',
      level: 'simple',
      counts: counts(3, 22),
      learned: counts(3, 22),
      share: { good: 0.12, low: 0.042, high: 0.3 },
    },
  ],
  routing: {
    levels: [
      { level: 'simple', own_tier: counts(3, 22), smaller_tier: none, routed_as: 'medium' },
      { level: 'medium', own_tier: counts(2, 1), smaller_tier: none, routed_as: 'medium' },
      { level: 'hard', own_tier: none, smaller_tier: none, routed_as: 'hard' },
    ],
    enough: 20,
    poor: 0.6,
    good: 0.8,
  },
};

it('shows each rate with its number of answers, and resets what Auto learned', async () => {
  network.grades = structuredClone(REPORT);
  app = await openSettings(network, '#monitor');
  const row = (await screen.findByTestId('grades')).querySelector('tbody tr');
  expect([...(row?.querySelectorAll('td') ?? [])].map((cell) => cell.textContent)).toEqual([
    'Fast',
    'small-Q4_K_M',
    'Simple',
    '12 % of 25',
    '4–30 %',
  ]);
  expect(screen.getByTestId('learned').textContent).toContain(
    'Simple questions go to Everyday, because of your grades.',
  );
  expect(screen.getByTestId('learned').textContent).toContain('Medium questions: 3 of the 20 grades');
  await fireEvent.click(screen.getByTestId('reset-learned'));
  await fireEvent.click(await screen.findByTestId('confirm'));
  await until(() => network.sent('POST', '/tierbar/v1/grades/reset').length === 1);
  await until(() => screen.queryByTestId('reset-learned') === null);
});

it('says how grades are given before there are any', async () => {
  app = await openSettings(network, '#monitor');
  expect((await screen.findByTestId('grades-empty')).textContent).toContain('thumbs');
});

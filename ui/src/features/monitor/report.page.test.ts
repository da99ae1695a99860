import { fireEvent, screen } from '@testing-library/svelte';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { App } from '../../lib/app';
import { browser } from '../../testing/browser';
import { Network, refusal } from '../../testing/host';
import { openSettings } from '../../testing/settings';

const ROUTE = '/tierbar/v1/diagnosis';
const TEXT = 'Tierbar 1.0\nfast: ready\n';

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
  await screen.findByTestId('diagnose');
}

it('shows the figures before it copies them', async () => {
  const written = vi.fn(async () => {});
  vi.stubGlobal('navigator', { clipboard: { writeText: written } });
  network.override = ({ path }) => (path === ROUTE ? Response.json({ text: TEXT }) : null);
  await open();
  expect(network.sent('GET', ROUTE)).toHaveLength(0);
  expect(screen.queryByTestId('copy-diagnosis')).toBeNull();
  await fireEvent.click(screen.getByTestId('diagnose'));
  expect((await screen.findByTestId('diagnosis')).textContent).toBe(TEXT);
  await fireEvent.click(screen.getByTestId('copy-diagnosis'));
  await screen.findByText('Copied.');
  expect(written).toHaveBeenCalledExactlyOnceWith(TEXT);
});

it('says why there are no figures, and tries again', async () => {
  network.override = ({ path }) => (path === ROUTE ? refusal(500, 'internal', 'the disk is gone') : null);
  await open();
  await fireEvent.click(screen.getByTestId('diagnose'));
  expect((await screen.findByTestId('diagnosis-problem')).textContent).toContain('The disk is gone.');
  network.override = ({ path }) => (path === ROUTE ? Response.json({ text: TEXT }) : null);
  await fireEvent.click(screen.getByTestId('diagnose'));
  await screen.findByTestId('diagnosis');
  expect(screen.queryByTestId('diagnosis-problem')).toBeNull();
});

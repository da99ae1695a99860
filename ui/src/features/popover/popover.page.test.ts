import { fireEvent, render, screen } from '@testing-library/svelte';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type App, startApp } from '../../lib/app';
import type { TierStatus } from '../../platform/openapi';
import { browser } from '../../testing/browser';
import { Network, STATUS, until } from '../../testing/host';
import Root from './Root.svelte';
import { extent, type Moment, ofHistory, sparkline, withMoment } from './readings';

let network: Network;
let app: App;
const openChat = vi.fn(async () => {});
const closePopover = vi.fn(async () => {});

beforeEach(() => {
  browser();
  vi.clearAllMocks();
  network = new Network();
  const at = Math.floor(Date.now() / 1000) - 60;
  const point = { at, samples: 1, ram_used_bytes: { mean: 2 ** 33, max: 2 ** 33 }, swap_used_bytes: null };
  network.override = ({ path }) =>
    path.startsWith('/tierbar/v1/history') ? Response.json({ step_seconds: 1, points: [point] }) : null;
});
afterEach(() => app.feed.stop());

async function open(tiers: TierStatus[] = STATUS.tiers) {
  app = startApp({
    connection: async () => ({ url: '' }),
    openSettings: async () => {},
    openChat,
    closePopover,
  });
  render(Root, { app });
  await until(() => network.eventStreams.length === 1);
  network.eventStreams[0]?.event('snapshot', { ...STATUS, tiers });
  await screen.findByTestId('popover-question');
}

describe('the popover', () => {
  it('shows ten minutes of readings, and the tiers with their switches', async () => {
    await open();
    const label = () => screen.getByTestId('sparkline-ram').getAttribute('aria-label');
    await until(() => label() === 'RAM, the last ten minutes: between 7 GB and 8 GB');
    expect(network.sent('GET', '/tierbar/v1/history?minutes=10')).toHaveLength(1);
    expect(screen.getByTestId('popover-tier-primary').textContent).toMatch(/Everyday\s*Ready, 1 GB\s*gemma/);
    await fireEvent.click(screen.getByTestId('tier-stop-primary'));
    await until(() => network.sent('POST', '/tierbar/v1/tiers/primary/stop').length === 1);
  });

  it('begins a chat with a question, and shows it in the chat window', async () => {
    await open();
    await fireEvent.input(screen.getByTestId('popover-question'), { target: { value: ' Why? ' } });
    await fireEvent.click(screen.getByTestId('popover-ask'));
    await until(() => openChat.mock.calls.length === 1);
    expect(network.turns[0]?.request.body).toMatchObject({ text: 'Why?', model: 'auto' });
    expect(openChat).toHaveBeenCalledWith(network.chats[0]?.id);
  });

  it('asks nothing without a model, and closes with Escape', async () => {
    await open(STATUS.tiers.map((tier) => ({ ...tier, model: null, state: 'stopped' })));
    const field = screen.getByTestId<HTMLInputElement>('popover-question');
    expect(field.disabled).toBe(true);
    expect(field.placeholder).toBe('No model is ready to answer yet.');
    await fireEvent.keyDown(window, { key: 'Escape' });
    expect(closePopover).toHaveBeenCalledOnce();
  });
});

describe('readings', () => {
  const moment = (at: number, speed: number | null): Moment => ({ at, ram: 1, swap: 0, speed });

  it('are kept for ten minutes', () => {
    const moments = withMoment([moment(1, 1), moment(500, 2), moment(700, 3)], moment(650, 4));
    expect(moments.map(({ at }) => at)).toEqual([500, 650]);
  });

  it('are a line with gaps where they are unknown', () => {
    const moments = [moment(0, 10), moment(300, null), moment(600, 5)];
    expect(sparkline(moments, 'speed', 10, 100, 20)).toEqual(['0.0,0.0', '100.0,10.0']);
    expect(sparkline(moments, 'swap', 0, 100, 20)).toEqual(['0.0,20.0 50.0,20.0 100.0,20.0']);
    expect(extent(moments, 'speed')).toEqual({ least: 5, most: 10 });
    expect(extent([moment(0, null)], 'speed')).toBeNull();
    expect(ofHistory([])).toEqual([]);
  });
});

import { fireEvent, render, screen } from '@testing-library/svelte';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type App, startApp } from '../../lib/app';
import type { Mark } from '../../platform/openapi';
import { browser } from '../../testing/browser';
import { Network, refusal, STATUS, Stream, until } from '../../testing/host';
import { localModel } from '../../testing/models';
import { describeMark, measurableTier } from '../models/acting';
import { Chats } from './chats.svelte';
import Root from './Root.svelte';

const STEPS = {
  thinking: false,
  calls: { right: 4, milliseconds: 20_000 },
  text: { right: 10, milliseconds: 3000 },
};
const REPORT: Mark = {
  judgment: 'agent',
  version: '0.1.0',
  taken_at: '2026-11-26T20:00:00Z',
  model: 'smol',
  size_bytes: 100,
  modified: null,
  sha256: null,
  right: 10,
  of: 12,
  passed: true,
  milliseconds: null,
  first_steps: STEPS,
};

describe('the way of a model', () => {
  let network: Network;
  let app: App;
  let streams: Stream[];
  let last: Mark | null;

  beforeEach(async () => {
    browser();
    network = new Network();
    streams = [];
    last = null;
    network.override = (request) => {
      if (request.path === '/tierbar/v1/models') {
        const model = localModel('smol', { tiers: ['fast', 'primary', 'heavy'], marks: last ? [last] : [] });
        return Response.json({ models_dir: '/m', disks: [], models: [model] });
      }
      if (!/\/tierbar\/v1\/tiers\/[a-z]+\/agent$/.test(request.path)) return null;
      if (streams.length > 1) return refusal(409, 'measuring', 'fast is being measured');
      const stream = new Stream(request);
      streams.push(stream);
      return stream.response;
    };
    const openWindow = vi.fn(async () => {});
    app = startApp({ connection: async () => ({ url: '' }), openSettings: openWindow, openChat: openWindow });
    const chats = new Chats({ api: app.api });
    chats.current.agent = '/work';
    render(Root, { app, chats });
    await until(() => network.eventStreams.length === 1);
  });
  afterEach(() => app.feed.stop());

  it('is measured on request, and shown', async () => {
    network.eventStreams[0]?.event('snapshot', STATUS);
    const way = await screen.findByTestId('agent-way');
    expect(way.textContent).toContain('Not measured yet: whether');
    await fireEvent.click(screen.getByTestId('agent-measure'));
    await until(() => streams.length === 1);
    streams[0]?.event('progress', { done: 5, of: 24, doing: 'by tool calls' });
    await until(() => way.textContent?.includes('5 of 24') === true);
    streams[0]?.event('report', REPORT);
    await until(() => way.textContent?.includes('Uses text commands (10 of 12 correct') === true);
    expect(screen.getByTestId('agent-measure').textContent).toBe('Measure Again');
    // Canceling closes the stream, which ends the measurement, and keeps what was known.
    await fireEvent.click(screen.getByTestId('agent-measure'));
    await until(() => streams.length === 2);
    await fireEvent.click(await screen.findByTestId('agent-measure-cancel'));
    await until(() => streams[1]?.closed === true);
    await until(() => way.textContent?.includes('Uses text commands') === true);
    expect(screen.queryByTestId('agent-measure-error')).toBeNull();
    await fireEvent.click(await screen.findByTestId('agent-measure'));
    expect((await screen.findByTestId('agent-measure-error')).textContent).toContain('being measured');
  });

  it('is not that of the model while it thinks, in a tier that does not', async () => {
    last = { ...REPORT, first_steps: { ...STEPS, thinking: true } };
    network.eventStreams[0]?.event('snapshot', STATUS);
    const way = await screen.findByTestId('agent-way');
    expect(way.textContent).toContain('Not measured yet: whether');
  });

  it('says when the model is too small', async () => {
    const score = (right: number) => ({ right, milliseconds: 1000 });
    const first_steps = { thinking: false, calls: score(2), text: score(3) };
    last = { ...REPORT, right: 3, passed: false, first_steps };
    network.eventStreams[0]?.event('snapshot', STATUS);
    const way = await screen.findByTestId('agent-way');
    expect(way.textContent).toContain('Too small to act as an agent (tool calls: 2 of 12');
  });
});

it('says how a model acts', () => {
  const first_steps = { ...STEPS, calls: { right: 11, milliseconds: 1000 } };
  expect(describeMark({ ...REPORT, right: 11, first_steps })).toBe(
    'Uses tool calls (11 of 12 correct; text commands: 10).',
  );
});

it('measures the tier of the chat, and for Auto one that is loaded', () => {
  const [first] = STATUS.tiers;
  if (!first) throw new Error('the status has tiers');
  const fast = {
    ...first,
    id: 'fast',
    kind: 'chat' as const,
    engine: 'embedded' as const,
    model: 'a',
    state: 'stopped' as const,
  };
  const heavy = { ...fast, id: 'heavy', model: 'b', state: 'ready' as const };
  const cloud = { ...fast, id: 'cloud', engine: 'endpoint' as const };
  const tiers = [fast, heavy, cloud];
  expect(measurableTier('fast', tiers)?.id).toBe('fast');
  expect(measurableTier('auto', tiers)?.id).toBe('heavy');
  expect(measurableTier('auto', [cloud, fast])?.id).toBe('fast');
  expect(measurableTier('cloud', tiers)).toBeUndefined();
  expect(measurableTier('a-chain', tiers)).toBeUndefined();
});

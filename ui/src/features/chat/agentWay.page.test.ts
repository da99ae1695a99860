import { fireEvent, render, screen } from '@testing-library/svelte';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type App, startApp } from '../../lib/app';
import type { AgentReport } from '../../platform/openapi';
import { browser } from '../../testing/browser';
import { Network, refusal, STATUS, Stream, until } from '../../testing/host';
import { describeActing, measurableTier } from '../models/acting';
import { Chats } from './chats.svelte';
import Root from './Root.svelte';

const REPORT: AgentReport = {
  version: '0.1.0',
  taken_at: '2026-11-26T20:00:00Z',
  tier: 'fast',
  model: 'smol',
  size_bytes: 100,
  sha256: null,
  thinking: false,
  prompts: 12,
  calls: { right: 4, seconds: 20 },
  text: { right: 10, seconds: 3 },
  way: 'text',
};

describe('the way of a model', () => {
  let network: Network;
  let app: App;
  let streams: Stream[];
  let last: AgentReport | null;

  beforeEach(async () => {
    browser();
    network = new Network();
    streams = [];
    last = null;
    network.override = (request) => {
      if (!/\/tierbar\/v1\/tiers\/[a-z]+\/agent$/.test(request.path)) return null;
      if (request.method === 'GET') return Response.json({ report: last });
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

  it('says when the model is too small', async () => {
    last = { ...REPORT, way: null, calls: { right: 2, seconds: 1 }, text: { right: 3, seconds: 1 } };
    network.eventStreams[0]?.event('snapshot', STATUS);
    const way = await screen.findByTestId('agent-way');
    expect(way.textContent).toContain('Too small to act as an agent (tool calls: 2 of 12');
  });
});

it('says how a model acts', () => {
  const calls: AgentReport = { ...REPORT, way: 'calls', calls: { right: 11, seconds: 1 } };
  expect(describeActing(calls)).toBe('Uses tool calls (11 of 12 correct; text commands: 10).');
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

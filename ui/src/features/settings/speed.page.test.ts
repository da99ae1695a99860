import { fireEvent, screen, within } from '@testing-library/svelte';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { App } from '../../lib/app';
import type { BenchReport, Config, LoadPlan, PagingRow, Settings, TuneReport } from '../../platform/openapi';
import { browser } from '../../testing/browser';
import { configured, TIER } from '../../testing/config';
import { Network, refusal, type Sent, STATUS, Stream, until } from '../../testing/host';
import { openSettings } from '../../testing/settings';

const SETTINGS: Settings = { threads: 0, batch: 512, gpu_layers: null, kv_cache: 'f16' };
const FASTER: Settings = { ...SETTINGS, threads: 4 };
const MEMORY = {
  weights_mapped_bytes: 100 * 2 ** 20,
  weights_bytes: 0,
  kv_bytes: 45 * 2 ** 20,
  compute_bytes: 20 * 2 ** 20,
  footprint_bytes: null,
};
const figure = (median: number) => ({ median, low: median, high: median });
const BENCH: BenchReport = {
  version: '0.1.0',
  taken_at: '2026-11-21T20:00:00Z',
  tier: 'fast',
  model: 'smol',
  context_tokens: 4096,
  settings: SETTINGS,
  threads_used: 3,
  prompt_tokens: 512,
  answer_tokens: 64,
  runs: 3,
  rows: [
    { depth: 0, prefill: figure(412), decode: figure(41.2), first_token_ms: figure(1240), skipped: null },
    {
      depth: 4096,
      prefill: null,
      decode: null,
      first_token_ms: null,
      skipped: 'needs a context of 4672 tokens, and the tier has 4096',
    },
  ],
  load_ms: null,
  memory: MEMORY,
  disturbed: 0,
};
const TUNE: TuneReport = {
  version: '0.1.0',
  taken_at: '2026-11-21T20:30:00Z',
  tier: 'fast',
  model: 'smol',
  context_tokens: 4096,
  depth: 512,
  prompt_tokens: 1024,
  answer_tokens: 64,
  runs: 3,
  rows: [
    {
      knob: 'start',
      settings: SETTINGS,
      outcome: 'base',
      reason: 'as configured',
      request_ms: figure(4000),
      prefill: 400,
      decode: 40,
      load_ms: 200,
      memory: MEMORY,
    },
    {
      knob: 'threads',
      settings: FASTER,
      outcome: 'faster',
      reason: '25 % less time',
      request_ms: figure(3000),
      prefill: 500,
      decode: 50,
      load_ms: 200,
      memory: MEMORY,
    },
    {
      knob: 'batch',
      settings: { ...FASTER, batch: 128 },
      outcome: 'failed',
      reason: 'it crashed',
      request_ms: null,
      prefill: null,
      decode: null,
      load_ms: null,
      memory: null,
    },
  ],
  before: SETTINGS,
  after: FASTER,
  gain: 0.25,
  written: false,
  summary: 'threads 4 instead of automatic: 25 % less time.',
  disturbed: 0,
};

let network: Network;
let app: App;
let config: Config;
let saved: { bench: BenchReport | null; tune: TuneReport | null };
let measurements: Stream[];
let refuse: string | null;
let placement: LoadPlan['placement'];

function answer(request: Sent): Response | null {
  const { method, path, body } = request;
  if (path === '/tierbar/v1/models') return Response.json({ models_dir: '/m', models: [] });
  const [, tier, kind] = path.match(/^\/tierbar\/v1\/tiers\/(\w+)\/(bench|tune)$/) ?? [];
  if (tier !== undefined) {
    if (method === 'GET')
      return Response.json({ report: tier === 'fast' ? saved[kind as 'bench' | 'tune'] : null });
    if (refuse !== null) return refusal(409, 'measuring', refuse, 'wait until that has ended');
    const stream = new Stream(request);
    measurements.push(stream);
    return stream.response;
  }
  if (path !== '/tierbar/v1/config') return null;
  if (method === 'PATCH') {
    const fast = { ...config.tiers.fast, ...body.tiers.fast };
    config = { ...config, tiers: { ...config.tiers, fast } };
  }
  return Response.json({ path: '/data/config.toml', config });
}

beforeEach(() => {
  browser();
  network = new Network();
  network.override = answer;
  saved = { bench: null, tune: null };
  measurements = [];
  refuse = null;
  placement = 'resident';
  config = configured({ tiers: { fast: { ...TIER, model: 'smol.gguf' }, primary: TIER } });
});
afterEach(() => {
  app.feed.stop();
  location.hash = '';
});

async function open() {
  const plan: LoadPlan = { placement, lines: [], context_tokens: 4096, kind: 'generative' };
  const tiers = STATUS.tiers.map((tier) => (tier.id === 'fast' ? { ...tier, plan } : tier));
  app = await openSettings(network, 'tiers', { ...STATUS, tiers });
  await screen.findByTestId('settings-tier-fast-measure');
}

const button = (what: string) => screen.getByTestId<HTMLButtonElement>(`settings-tier-${what}`);

describe('measuring a tier', () => {
  it('shows progress, then the table and a summary', async () => {
    await open();
    expect(button('primary-measure').disabled).toBe(true);
    await fireEvent.click(button('fast-measure'));
    await until(() => measurements.length === 1);
    const [stream] = measurements;
    expect([stream?.request.path, stream?.request.body]).toEqual(['/tierbar/v1/tiers/fast/bench', {}]);
    stream?.write(': still there\n\n');
    stream?.event('progress', { done: 6, of: 24, doing: 'depth 512: measuring prefill of 512 tokens' });
    await screen.findByText('Depth 512: measuring prefill of 512 tokens.');
    const bar = screen.getByRole('progressbar', { name: 'Measuring fast' });
    expect(bar.getAttribute('aria-valuenow')).toBe('25');
    stream?.event('row', BENCH.rows[0]);
    stream?.event('report', BENCH);
    const table = within(await screen.findByTestId('settings-tier-fast-bench'));
    expect(table.getByText('412 tok/s')).toBeTruthy();
    expect(table.getByText('1.2 s')).toBeTruthy();
    expect(table.getByText('Needs a context of 4672 tokens, and the tier has 4096.')).toBeTruthy();
    expect(screen.getByText(/^Prefill 412 tok\/s, decode 41.2 tok\/s\./)).toBeTruthy();
    expect(screen.queryByTestId('settings-tier-fast-progress')).toBeNull();
  });

  it('compares the ways to run a model that is larger than memory', async () => {
    placement = 'cache';
    await open();
    expect(screen.queryByTestId('settings-tier-primary-compare')).toBeNull();
    await fireEvent.click(button('fast-compare'));
    await until(() => measurements.length === 1);
    const [stream] = measurements;
    expect(stream?.request.body).toEqual({ paging: true });
    const row: PagingRow = {
      paging: 'cache',
      prefill: figure(80),
      decode: figure(15.3),
      hit_rate: 0.796,
      read_bytes_per_token: 43_200_000,
      wait_ms_per_token: 21.4,
      skipped: null,
    };
    const nothing = {
      prefill: null,
      decode: null,
      hit_rate: null,
      read_bytes_per_token: null,
      wait_ms_per_token: null,
    };
    const other: PagingRow = { ...nothing, paging: 'stream', skipped: 'it is run as "cache" instead' };
    stream?.event('report', { ...BENCH, rows: [], paging: [row, other] });
    const table = within(await screen.findByTestId('settings-tier-fast-bench'));
    for (const text of [
      'With a cache of experts',
      '15.3 tok/s',
      '79 %',
      '43 MB',
      '21 ms',
      'It is run as "cache" instead.',
    ]) {
      expect(table.getByText(text)).toBeTruthy();
    }
  });

  it('is canceled by closing the connection, without an error', async () => {
    await open();
    await fireEvent.click(button('fast-tune'));
    await until(() => measurements.length === 1);
    await fireEvent.click(button('fast-measure-cancel'));
    await until(() => measurements[0]?.closed);
    await screen.findByTestId('settings-tier-fast-measure');
    expect(screen.queryByTestId('settings-tier-fast-speed-error')).toBeNull();
  });

  it('continues while another section is shown', async () => {
    await open();
    await fireEvent.click(button('fast-measure'));
    await until(() => measurements.length === 1);
    location.hash = 'monitor';
    window.dispatchEvent(new HashChangeEvent('hashchange'));
    await until(() => screen.queryByTestId('settings-tier-fast-progress') === null);
    expect(measurements[0]?.closed).toBe(false);
    location.hash = 'tiers';
    window.dispatchEvent(new HashChangeEvent('hashchange'));
    await screen.findByTestId('settings-tier-fast-progress');
  });

  it('reports a refusal, a failure and a lost connection', async () => {
    await open();
    refuse = 'primary is being measured';
    await fireEvent.click(button('fast-measure'));
    const alert = () => screen.findByTestId('settings-tier-fast-speed-error');
    expect((await alert()).textContent).toBe('Primary is being measured. Wait until that has ended.');
    refuse = null;
    await fireEvent.click(button('fast-measure'));
    await until(() => measurements.length === 1);
    expect(screen.queryByTestId('settings-tier-fast-speed-error')).toBeNull();
    measurements[0]?.event('error', { error: { message: 'fast was stopped', code: 'tier_stopped' } });
    expect((await alert()).textContent).toBe('Fast was stopped.');
    await fireEvent.click(button('fast-measure'));
    await until(() => measurements.length === 2);
    measurements[1]?.end();
    await until(() => screen.queryByText(/The measurement was interrupted/) !== null);
  });
});

describe('tuning a tier', () => {
  it('changes nothing until applied, and then only what differs', async () => {
    await open();
    await fireEvent.click(button('fast-tune'));
    await until(() => measurements.length === 1);
    expect(measurements[0]?.request.body).toEqual({ dry_run: true });
    measurements[0]?.event('report', TUNE);
    const table = within(await screen.findByTestId('settings-tier-fast-tuned'));
    expect(table.getByText('✓ 25 % less time.')).toBeTruthy();
    expect(table.getByText('✗ It crashed.')).toBeTruthy();
    expect(screen.getByTestId('settings-tier-fast-better').textContent).toBe(
      'Threads 4 instead of automatic: 25 % less time.',
    );
    expect(network.sent('PATCH', '/tierbar/v1/config')).toEqual([]);
    await fireEvent.click(button('fast-apply'));
    await screen.findByTestId('settings-tier-fast-in-use');
    expect(screen.getByTestId<HTMLDetailsElement>('settings-tier-fast-tuned').open).toBe(true);
    const patches = network.sent('PATCH', '/tierbar/v1/config').map((sent) => sent.body);
    expect(patches).toEqual([{ tiers: { fast: { threads: 4 } } }]);
    expect(screen.getByTestId<HTMLInputElement>('settings-tier-fast-threads').value).toBe('4');
  });

  it('does not offer results that started from other settings', async () => {
    saved.tune = {
      ...TUNE,
      before: { ...SETTINGS, kv_cache: 'q8_0' },
      after: { ...FASTER, kv_cache: 'q8_0' },
    };
    await open();
    await screen.findByText('The tier’s model or settings have changed. Tune it again.');
    expect(screen.queryByTestId('settings-tier-fast-apply')).toBeNull();
  });

  it('does not offer or show results of another model', async () => {
    saved = { bench: { ...BENCH, model: 'gemma' }, tune: { ...TUNE, model: 'gemma' } };
    await open();
    await screen.findByText('The tier’s model or settings have changed. Tune it again.');
    expect(screen.queryByTestId('settings-tier-fast-apply')).toBeNull();
    expect(screen.queryByText(/^Prefill [\d.]+ tok/)).toBeNull();
  });

  it('says when nothing is faster', async () => {
    saved = { bench: BENCH, tune: { ...TUNE, after: SETTINGS, gain: 0, summary: 'Nothing is faster.' } };
    await open();
    expect((await screen.findByTestId('settings-tier-fast-nothing')).textContent).toBe('Nothing is faster.');
    expect(screen.getByTestId('settings-tier-fast-bench')).toBeTruthy();
  });
});

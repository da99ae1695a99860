import { fireEvent, screen } from '@testing-library/svelte';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { App } from '../../lib/app';
import type { LedgerEntry, RequestCosts } from '../../platform/openapi';
import { browser } from '../../testing/browser';
import { configured } from '../../testing/config';
import { Network, until } from '../../testing/host';
import { openSettings } from '../../testing/settings';
import { complete, INPUTS } from './prices';
import { byTierAndClient, columns, dollars, energy, ofText } from './sums';

const COSTS: RequestCosts = {
  requests: 2,
  prompt_tokens: 900,
  completion_tokens: 100,
  measured_joules: 0,
  estimated_joules: 7200,
  electricity: 0.0006,
  paid: 0,
  cloud: null,
};

function entry(day: string, tier: string, client: string | null): LedgerEntry {
  return { ...COSTS, day, tier, client, chain: null, elsewhere: false };
}

describe('the sums', () => {
  it('mark estimates, and show nothing for what is unknown', () => {
    expect(energy(COSTS)).toBe('~2.00 Wh');
    expect(energy({ ...COSTS, measured_joules: 3600, estimated_joules: 0 })).toBe('1.00 Wh');
    expect(energy({ ...COSTS, estimated_joules: null })).toBe('–');
    expect([dollars(null), dollars(0), dollars(0.0006), dollars(1234.5), dollars(-2)]).toEqual([
      '–',
      '$0.00',
      '$0.0006',
      '$1,234.50',
      '−$2.00',
    ]);
  });

  it('are by tier and client, and by day with those without requests', () => {
    const entries = [
      entry('2026-11-26', 'fast', null),
      { ...entry('2026-11-24', 'fast', null), paid: 0.25 },
      entry('2026-11-24', 'fast', 'phone'),
    ];
    expect(byTierAndClient(entries)).toMatchObject([
      { tier: 'fast', client: null, requests: 4, prompt_tokens: 1800, paid: 0.25 },
      { tier: 'fast', client: 'phone', requests: 2, paid: 0 },
    ]);
    expect(columns(entries, 3, '2026-11-26').map(({ day, requests }) => [day, requests])).toEqual([
      ['2026-11-24', 4],
      ['2026-11-25', 0],
      ['2026-11-26', 2],
    ]);
  });

  it('leave out embeddings where text is priced', () => {
    const entries = ['fast', 'embedder', 'reranker'].map((tier) => entry('2026-11-26', tier, null));
    expect(ofText(entries)).toMatchObject({ requests: 2, prompt_tokens: 900, completion_tokens: 100 });
  });

  it('need every figure, none of which is ours', () => {
    const filled = Object.fromEntries(INPUTS.map(({ key }) => [key, 50]));
    expect(complete(filled)).toMatchObject({ machine_price: 50, local_share: 0.5 });
    for (const { key } of INPUTS) expect(complete({ ...filled, [key]: null }), key).toBeNull();
  });
});

describe('the cards', () => {
  let network: Network;
  let app: App;

  beforeEach(() => {
    browser();
    network = new Network();
    network.ledger = { entries: [entry('2026-11-26', 'fast', null)], total: COSTS, days: 2 };
    let config = configured({ costs: { busy_watts: 30 } });
    network.override = ({ method, path, body }) => {
      if (path === '/tierbar/v1/config') {
        if (method === 'PATCH') config = { ...config, costs: { ...config.costs, ...body.costs } };
        return Response.json({ config, path: '/data/config.toml' });
      }
      if (path !== '/tierbar/v1/costs/break-even') return null;
      return Response.json({ cloud: 100, avoided: 50, kwh: 7.3, electricity: 2, saved: 48, months: 12.5 });
    };
  });
  afterEach(() => {
    app.feed.stop();
    location.hash = '';
  });

  it('read what requests took once, and again for other days', async () => {
    app = await openSettings(network, '#monitor');
    await screen.findByTestId('ledger-sums');
    const asked = () => network.requests.map(({ path }) => path).filter((path) => path.includes('/ledger'));
    expect(asked()).toEqual(['/tierbar/v1/ledger?days=30']);
    await fireEvent.change(screen.getByTestId('ledger-days'), { target: { value: '7' } });
    await until(() => asked().length === 2);
    expect(asked()[1]).toBe('/tierbar/v1/ledger?days=7');
  });

  it('show what requests took, and a break-even once every figure is there', async () => {
    app = await openSettings(network, '#monitor');
    const sums = await screen.findByTestId('ledger-sums');
    expect(sums.textContent).toContain('1,000tokens, 2 requests');
    expect(screen.getByTestId('ledger').textContent).toMatch(/Paid.*\$0\.00/s);
    expect(sums.textContent).toContain('~2.00 Whenergy, estimated from your watts');
    expect(screen.getByTestId<HTMLInputElement>('price-busy_watts').value).toBe('30');
    expect(screen.getByTestId('even-missing').textContent).toBe('10 figures are missing.');
    await fireEvent.click(await screen.findByTestId('even-measured'));
    expect(screen.getByTestId<HTMLInputElement>('even-prompt_tokens').value).toBe('450');
    for (const { key } of INPUTS) {
      const input = screen.getByTestId<HTMLInputElement>(`even-${key}`);
      if (input.value === '') await fireEvent.change(input, { target: { value: '20' } });
    }
    expect((await screen.findByTestId('even-result')).textContent?.trim()).toBe(
      'The machine has paid for itself after 12.5 months.',
    );
    const [asked] = network.sent('POST', '/tierbar/v1/costs/break-even');
    expect(asked?.body).toMatchObject({ busy_watts: 30, prompt_tokens: 450, local_share: 0.2 });
    const saved = network.sent('PATCH', '/tierbar/v1/config').map(({ body }) => body);
    await until(() => saved.length === 5);
    expect(saved).toContainEqual({ costs: { machine_price: 20 } });
    const machine = screen.getByTestId<HTMLInputElement>('even-machine_price');
    // As of `1e`, which is no number and not nothing.
    Object.defineProperty(machine, 'validity', { value: { badInput: true } });
    await fireEvent.change(machine, { target: { value: '' } });
    expect(network.sent('PATCH', '/tierbar/v1/config')).toHaveLength(5);
    await fireEvent.change(screen.getByTestId('price-busy_watts'), { target: { value: '' } });
    await until(() => screen.queryByTestId('even-missing') !== null);
  });
});

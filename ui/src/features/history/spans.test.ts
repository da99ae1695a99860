import { expect, it } from 'vitest';
import type { Entry, Kind, RequestRecord, TierStatus } from '../../platform/openapi';
import { STATUS } from '../../testing/host';
import { RANGES } from './range';
import { answering, describeSpan, spansOf } from './spans';

const [fast, primary] = STATUS.tiers as [TierStatus, TierStatus];
const RANGE = RANGES[0];
let ids = 0;

function event(at: number, tier: string, kind: Kind, sentence = `${tier} ${kind}`): Entry {
  ids += 1;
  return { id: ids, at_ms: at * 1000, kind, tier, model: 'smol', sentence };
}
const times = (tier: TierStatus, events: Entry[]) =>
  spansOf(tier, events, 100, 700).map(({ phase, from, to, why }) => [phase, from, to, why]);

it('follows a tier from its load to its end, with the reason', () => {
  const events = [
    event(200, 'fast', 'load'),
    event(210, 'primary', 'load'),
    event(220, 'fast', 'ready'),
    event(300, 'fast', 'refusal'),
    event(400, 'fast', 'unload', 'unloaded fast on quit, freed 68 MiB'),
    event(500, 'fast', 'load'),
    event(505, 'fast', 'failure', 'the file is damaged'),
  ];
  expect(times(fast, events)).toEqual([
    ['loading', 200, 220, null],
    ['loaded', 220, 400, 'unloaded fast on quit, freed 68 MiB'],
    ['loading', 500, 505, 'the file is damaged'],
  ]);
});

it('was loaded before the first event if that ends it, and is still if its state says so', () => {
  expect(times(fast, [event(150, 'fast', 'crash', 'killed')])).toEqual([['loaded', 100, 150, 'killed']]);
  expect(times(primary, [])).toEqual([['loaded', 100, 700, null]]);
  expect(times(primary, [event(650, 'primary', 'ready')])).toEqual([['loaded', 650, 700, null]]);
  expect(times(fast, [])).toEqual([]);
});

it('ends what a killed host left without an event', () => {
  const events = [event(50, 'fast', 'ready'), event(300, 'fast', 'load'), event(310, 'fast', 'ready')];
  expect(times(fast, events)).toEqual([
    ['loaded', 100, 300, null],
    ['loading', 300, 310, null],
  ]);
});

it('joins the times of requests that touch', () => {
  const request = (at: number, waited: number, duration: number, tier = 'fast') =>
    ({ tier, at_ms: at * 1000, waited_ms: waited * 1000, duration_ms: duration * 1000 }) as RequestRecord;
  const requests = [
    request(300, 5, 20),
    request(310, 0, 30),
    request(50, 0, 60),
    request(400, 0, 9, 'heavy'),
  ];
  expect(answering('fast', requests, 100, 700)).toEqual([
    { from: 100, to: 110 },
    { from: 305, to: 340 },
  ]);
});

it('describes a time in sentences', () => {
  const [span] = spansOf(fast, [event(150, 'fast', 'unload', 'fast was stopped; freed 68 MiB')], 100, 700);
  expect(span && describeSpan(span, RANGE)).toMatch(
    /^Fast was loaded from \d\d:\d\d:40 to \d\d:\d\d:30 \(50 s\), with smol\. Fast was stopped; freed 68 MB\.$/,
  );
  const [still] = spansOf(primary, [], 100, 700);
  expect(still && describeSpan(still, RANGE)).toMatch(
    /^Everyday has been loaded since \d\d:\d\d:40, with gemma\.$/,
  );
});

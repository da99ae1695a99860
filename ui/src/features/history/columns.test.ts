import { expect, it } from 'vitest';
import type { History, Point } from '../../platform/openapi';
import { columns, peak } from './columns';
import { RANGES } from './range';
import { summarize } from './summaries';

const MIB = 2 ** 20;

function point(at: number, parts: Partial<Point> = {}): Point {
  return { at, samples: 1, ...parts };
}
function spread(mean: number, max = mean) {
  return { mean, max };
}
function swap(at: number, bytes: number) {
  return point(at, { swap_used_bytes: spread(bytes) });
}

it('has an empty row where readings are missing, and none where they are only slow', () => {
  const history: History = { step_seconds: 1, points: [100, 105, 106, 200].map((at) => swap(at, 1)) };
  const { at, swap: used } = columns(history);
  expect(at).toEqual([100, 105, 106, 107, 200]);
  expect(used).toEqual([1, 1, 1, null, 1]);
});

it('knows the growth of swap from a minute on, and not across a gap', () => {
  const seconds: History = { step_seconds: 1, points: [0, 30, 60, 200].map((at) => swap(at, at * MIB)) };
  expect(columns(seconds).growth).toEqual([null, null, null, null, 60 * MIB, null, null]);
  const hours: History = {
    step_seconds: 3600,
    points: [swap(0, 0), swap(3600, 120 * MIB), swap(7200, 60 * MIB)],
  };
  expect(columns(hours).growth).toEqual([null, 2 * MIB, -1 * MIB]);
});

it('leaves what older versions have not kept unknown', () => {
  const history: History = { step_seconds: 60, points: [point(60, { ram_used_bytes: spread(5) })] };
  expect(columns(history)).toMatchObject({ models: [null], used: [5], decode: [null], pressure: [null] });
  expect(peak(history, ({ models_bytes }) => models_bytes)).toBeNull();
});

it('says what each chart shows, by the worst of each point', () => {
  const day = RANGES[1];
  const history: History = {
    step_seconds: 120,
    points: [
      point(120 - 86_400),
      point(0, {
        models_bytes: spread(1000 * MIB, 3174 * MIB),
        ram_used_bytes: spread(5000 * MIB),
        swap_used_bytes: spread(100 * MIB),
        decode_tokens_per_second: spread(12, 14.2),
        disk_read_bytes_per_second: spread(1e6, 1.4e9),
        pressure: 'normal',
      }),
      point(120, { swap_used_bytes: spread(300 * MIB, 310 * MIB), pressure: 'warning' }),
    ],
  };
  expect(summarize(history, columns(history), day)).toEqual({
    memory: 'Models used 3.1 GB at most in the last 24 hours.',
    swap: 'Swap was 310 MB at most in the last 24 hours.',
    growth: 'Swap grew by 100 MB per minute at most in the last 24 hours.',
    pressure: 'Memory pressure was high at times in the last 24 hours.',
    decode: 'Answers were generated at up to 14.2 tok/s in the last 24 hours.',
    reads: 'The disk was read at up to 1.4 GB/s in the last 24 hours.',
  });
  const young: History = { step_seconds: 120, points: history.points.slice(1) };
  expect(summarize(young, columns(young), day).swap).toMatch(/^Swap was 310 MB at most from \d\d:\d\d on\.$/);
  const nothing: History = { step_seconds: 1, points: [] };
  expect(summarize(nothing, columns(nothing), day).memory).toBe('No readings in the last 24 hours.');
});

import { describe, expect, it } from 'vitest';
import type { JobStatus } from '../../platform/api';
import { queued } from '../../testing/queue';
import { facts, obstacle, summary } from './words';

const NOW = new Date(2026, 10, 22, 14, 0, 0).getTime();
const MINUTE = 60_000;
const job = (change: Partial<JobStatus> = {}) =>
  queued('a', {
    created_ms: NOW - 5 * MINUTE,
    not_before_ms: NOW,
    deadline_ms: NOW + 90 * MINUTE,
    ...change,
  });

describe('of a queued request', () => {
  it('is told since when it waits, how often it was tried, when it is again, and how long it may take', () => {
    expect(facts(job(), NOW)).toEqual(['since 13:55:00', 'given up in 1 h 30 min']);
    const tried = job({ attempts: 2, max_attempts: 300, not_before_ms: NOW + 12_000, priority: 'high' });
    expect(facts(tried, NOW)).toEqual([
      'since 13:55:00',
      'high priority',
      'tried 2 of 300 times',
      'again in 12 s',
      'given up in 1 h 30 min',
    ]);
    expect(facts(tried, NOW + 12_000)).not.toContain('again in 12 s');
    expect(facts(job({ state: 'running', attempts: 3, max_attempts: 300 }), NOW)).toContain(
      'attempt 3 of 300',
    );
  });

  it('that has ended is told when, and with which status', () => {
    const failed = job({ state: 'failed', attempts: 1, max_attempts: 300, status: 400, ended_ms: NOW });
    expect(facts(failed, NOW)).toEqual([
      'since 13:55:00',
      'tried 1 of 300 times',
      'ended 14:00:00',
      'status 400',
    ]);
  });

  it('is told what was in the way', () => {
    expect(obstacle(job())).toBeNull();
    expect(obstacle(job({ reason: 'nobody listens' }))).toBe('Last attempt: nobody listens.');
    expect(obstacle(job({ state: 'failed', reason: 'the model is unknown' }))).toBe('The model is unknown.');
  });
});

it('sums up what there is, and says nothing of nothing', () => {
  const counts: Record<string, number> = { waiting: 3, done: 12, cancelled: 4 };
  expect(summary((state) => counts[state] ?? 0)).toBe('3 waiting, 12 done');
  expect(summary(() => 0)).toBe('');
});

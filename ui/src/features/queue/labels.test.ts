import { describe, expect, it } from 'vitest';
import type { JobStatus } from '../../platform/openapi';
import { queued } from '../../testing/queue';
import { describeObstacle, listFacts, summarize } from './labels';

const NOW = new Date(2026, 10, 22, 14, 0, 0).getTime();
const MINUTE = 60_000;
const job = (change: Partial<JobStatus> = {}) =>
  queued('a', {
    created_ms: NOW - 5 * MINUTE,
    not_before_ms: NOW,
    deadline_ms: NOW + 90 * MINUTE,
    ...change,
  });

describe('a queued request', () => {
  it('shows its age, attempts, next attempt and expiry', () => {
    expect(listFacts(job(), NOW)).toEqual(['queued 13:55:00', 'expires in 1 h 30 min']);
    const tried = job({ attempts: 2, max_attempts: 300, not_before_ms: NOW + 12_000, priority: 'high' });
    expect(listFacts(tried, NOW)).toEqual([
      'queued 13:55:00',
      'high priority',
      '2 of 300 attempts',
      'retries in 12 s',
      'expires in 1 h 30 min',
    ]);
    expect(listFacts(tried, NOW + 12_000)).not.toContain('retries in 12 s');
    expect(listFacts(job({ state: 'running', attempts: 3, max_attempts: 300 }), NOW)).toContain(
      'attempt 3 of 300',
    );
  });

  it('shows when it ended, and its status', () => {
    const failed = job({ state: 'failed', attempts: 1, max_attempts: 300, status: 400, ended_ms: NOW });
    expect(listFacts(failed, NOW)).toEqual([
      'queued 13:55:00',
      '1 of 300 attempts',
      'ended 14:00:00',
      'status 400',
    ]);
  });

  it('shows why its last attempt failed', () => {
    expect(describeObstacle(job())).toBeNull();
    expect(describeObstacle(job({ reason: 'connection refused' }))).toBe('Last attempt: connection refused.');
    expect(describeObstacle(job({ state: 'failed', reason: 'the model is unknown' }))).toBe(
      'The model is unknown.',
    );
  });
});

it('counts requests by state, leaving out states without any', () => {
  const counts: Record<string, number> = { waiting: 3, done: 12, cancelled: 4 };
  expect(summarize((state) => counts[state] ?? 0)).toBe('3 waiting, 12 done');
  expect(summarize(() => 0)).toBe('');
});

import type { JobStatus } from '../platform/openapi';

/** A request that was left just now and has not been tried. */
export function queued(id: string, change: Partial<JobStatus> = {}): JobStatus {
  const now = Date.now();
  return {
    id,
    state: 'waiting',
    priority: 'normal',
    path: '/v1/chat/completions',
    created_ms: now,
    not_before_ms: now,
    deadline_ms: now + 24 * 3600 * 1000,
    ended_ms: null,
    attempts: 0,
    max_attempts: 300,
    status: null,
    reason: null,
    webhook: null,
    ...change,
  };
}

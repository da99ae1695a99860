import { moment, sentence, span } from '../../lib/format';
import type { JobState, JobStatus } from '../../platform/openapi';

export const STATES: Record<JobState, { label: string; tone: 'quiet' | 'ok' | 'danger' }> = {
  waiting: { label: 'Waiting', tone: 'quiet' },
  running: { label: 'Running', tone: 'ok' },
  done: { label: 'Done', tone: 'ok' },
  failed: { label: 'Failed', tone: 'danger' },
  cancelled: { label: 'Canceled', tone: 'quiet' },
  expired: { label: 'Expired', tone: 'danger' },
};

export function hasEnded({ state }: JobStatus): boolean {
  return state !== 'waiting' && state !== 'running';
}

const COUNT = {
  running: (n: number) => `${n} running`,
  waiting: (n: number) => `${n} waiting`,
  done: (n: number) => `${n} done`,
  failed: (n: number) => `${n} failed`,
  expired: (n: number) => `${n} expired`,
};

/** Counts the requests by state: `2 running, 3 waiting, 12 done`. */
export function summarize(count: (state: JobState) => number): string {
  return (['running', 'waiting', 'done', 'failed', 'expired'] as const)
    .filter((state) => count(state) > 0)
    .map((state) => COUNT[state](count(state)))
    .join(', ');
}

/** Lists when a request was queued, how often it was tried and when it expires. */
export function listFacts(job: JobStatus, now: number): string[] {
  const facts = [`queued ${moment(job.created_ms, new Date(now))}`];
  if (job.priority === 'high') facts.push('high priority');
  if (job.priority === 'low') facts.push('low priority');
  if (job.state === 'running') facts.push(`attempt ${job.attempts} of ${job.max_attempts}`);
  else if (job.attempts > 0) facts.push(`${job.attempts} of ${job.max_attempts} attempts`);
  if (hasEnded(job)) {
    if (job.ended_ms !== null) facts.push(`ended ${moment(job.ended_ms, new Date(now))}`);
    if (job.status !== null) facts.push(`status ${job.status}`);
    return facts;
  }
  const next = job.not_before_ms - now;
  if (job.state === 'waiting' && next > 0) facts.push(`retries in ${span(next / 1000)}`);
  facts.push(`expires in ${span(Math.max(job.deadline_ms - now, 0) / 1000)}`);
  return facts;
}

/** Describes why the last attempt failed. */
export function describeObstacle({ reason, state }: JobStatus): string | null {
  if (reason === null) return null;
  return sentence(state === 'waiting' || state === 'running' ? `Last attempt: ${reason}` : reason);
}

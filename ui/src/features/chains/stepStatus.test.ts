import { describe, expect, it } from 'vitest';
import type { Gate, StepStatus, TierStatus } from '../../platform/openapi';
import { STATUS } from '../../testing/host';
import { describeStep } from './stepStatus';
import { formatSteps } from './steps';

const [fast] = STATUS.tiers as [TierStatus];
const cloud = (gate: Gate): StepStatus => ({ step: 'sonnet', server: 'api.example.com', ...gate });
const endpoint = (gate: Gate, sinceMs = 0) => describeStep(cloud(gate), sinceMs, undefined, 0);
const here = (change: Partial<TierStatus>) => describeStep({ step: 'fast' }, 0, { ...fast, ...change }, 0);

describe('a step', () => {
  it('shows whether an endpoint is available, or why not and for how long', () => {
    expect(endpoint({ gate: 'open' })).toEqual({ tone: 'ok', text: 'Available' });
    expect(endpoint({ gate: 'cooling', for_ms: 24_000 }).text).toBe('Rate limited: next attempt in 24 s');
    expect(endpoint({ gate: 'broken', for_ms: 60_000 }).text).toBe('Failing: next attempt in 1 min');
    expect(endpoint({ gate: 'trying' }).text).toBe('Failing: testing with one request');
    expect(endpoint({ gate: 'refused', for_ms: 840_000 })).toEqual({
      tone: 'danger',
      text: 'Key refused: next attempt in 14 min. To replace the key, run',
      command: 'tierbar secret set api.example.com',
    });
  });

  it('counts down from when it was read, and is available at the end', () => {
    const gate: Gate = { gate: 'cooling', for_ms: 24_000 };
    expect(endpoint(gate, 1000).text).toBe('Rate limited: next attempt in 23 s');
    expect(endpoint(gate, 23_999).text).toBe('Rate limited: next attempt in 1 s');
    for (const late of [24_000, 90_000]) expect(endpoint(gate, late).text).toBe('Available');
    expect(endpoint({ gate: 'broken', for_ms: 1000 }, 1000).text).toBe('Failing: the next request tests it');
    expect(endpoint({ gate: 'refused', for_ms: 1000 }, 1000)).toEqual({ tone: 'ok', text: 'Available' });
  });

  it('shows the state of its tier', () => {
    expect(here({ state: 'stopped' }).text).toBe('Loads on request');
    expect(here({ state: 'starting', loaded_percent: 40 }).text).toBe('Loading, 40 %');
    expect(here({ state: 'ready' })).toEqual({ tone: 'ok', text: 'Ready' });
    expect(here({ state: 'failed', reason: 'the file is torn' })).toEqual({
      tone: 'danger',
      text: 'Failed: the file is torn',
    });
    expect(here({ model: null }).text).toBe('No model');
    expect(describeStep({ step: 'gone' }, 0, undefined, 0).text).toBe('Removed');
  });

  it('shows how many requests wait in the queue', () => {
    expect(describeStep({ step: 'queue' }, 0, undefined, 0).text).toBe(
      'Queues requests that no other step answers',
    );
    expect(describeStep({ step: 'queue' }, 0, undefined, 3).text).toBe(
      'Queues requests that no other step answers; 3 waiting',
    );
  });
});

it('lists the steps in order', () => {
  const steps: StepStatus[] = [cloud({ gate: 'open' }), { step: 'fast' }, { step: 'queue' }];
  expect(formatSteps({ name: 'night', steps, triage: false })).toBe('sonnet, then Fast, then the queue');
});

import { describe, expect, it } from 'vitest';
import type { Gate, StepStatus, TierStatus } from '../../platform/api';
import { STATUS } from '../../testing/host';
import { order } from './order';
import { stepWords } from './words';

const [fast] = STATUS.tiers as [TierStatus];
const cloud = (gate: Gate): StepStatus => ({ step: 'sonnet', server: 'api.example.com', ...gate });
const asked = (gate: Gate, sinceMs = 0) => stepWords(cloud(gate), sinceMs, undefined, 0);
const here = (change: Partial<TierStatus>) => stepWords({ step: 'fast' }, 0, { ...fast, ...change }, 0);

describe('a step', () => {
  it('that is an endpoint says whether it may be asked, and else for how long not and why', () => {
    expect(asked({ gate: 'open' })).toEqual({ tone: 'ok', text: 'May be asked' });
    expect(asked({ gate: 'cooling', for_ms: 24_000 }).text).toBe('Left alone for 24 s: too many requests');
    expect(asked({ gate: 'broken', for_ms: 60_000 }).text).toBe(
      'Failing: left alone for 1 min, then one request tries it',
    );
    expect(asked({ gate: 'trying' }).text).toBe('Failing: one request is trying it');
    expect(asked({ gate: 'refused', for_ms: 840_000 })).toEqual({
      tone: 'danger',
      text: 'Key refused, left alone for 14 min. Give another:',
      command: 'tierbar secret set api.example.com',
    });
  });

  it('counts down from when that was told, and is open at the end', () => {
    const gate: Gate = { gate: 'cooling', for_ms: 24_000 };
    expect(asked(gate, 1000).text).toBe('Left alone for 23 s: too many requests');
    expect(asked(gate, 23_999).text).toBe('Left alone for 1 s: too many requests');
    for (const late of [24_000, 90_000]) expect(asked(gate, late).text).toBe('May be asked');
    expect(asked({ gate: 'broken', for_ms: 1000 }, 1000).text).toBe('Failing: one request tries it next');
    expect(asked({ gate: 'refused', for_ms: 1000 }, 1000)).toEqual({ tone: 'ok', text: 'May be asked' });
  });

  it('that is a tier of this machine stands as that does', () => {
    expect(here({ state: 'stopped' }).text).toBe('Loads when it is asked');
    expect(here({ state: 'starting', loaded_percent: 40 }).text).toBe('Loading, 40 %');
    expect(here({ state: 'ready' })).toEqual({ tone: 'ok', text: 'Ready' });
    expect(here({ state: 'failed', reason: 'the file is torn' })).toEqual({
      tone: 'danger',
      text: 'Failed: the file is torn',
    });
    expect(here({ model: null }).text).toBe('Has no model');
    expect(stepWords({ step: 'gone' }, 0, undefined, 0).text).toBe('Removed');
  });

  it('that is the queue says how many wait', () => {
    expect(stepWords({ step: 'queue' }, 0, undefined, 0).text).toBe('Keeps what nobody answers');
    expect(stepWords({ step: 'queue' }, 0, undefined, 3).text).toBe(
      'Keeps what nobody answers; 3 waiting now',
    );
  });
});

it('tells the order in words', () => {
  const steps: StepStatus[] = [cloud({ gate: 'open' }), { step: 'fast' }, { step: 'queue' }];
  expect(order({ name: 'night', steps })).toBe('sonnet, then fast, then the queue');
});

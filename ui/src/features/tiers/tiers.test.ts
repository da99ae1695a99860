import { describe, expect, it } from 'vitest';
import type { TierState } from '../../platform/api';
import { STATUS } from '../../testing/host';
import { Loads } from './loads';
import { stateLabel, whoAnswers } from './tiers';

const [fast, primary] = STATUS.tiers as [(typeof STATUS.tiers)[0], (typeof STATUS.tiers)[0]];
const inState = (state: TierState) => [{ ...fast, state }];

describe('who answers', () => {
  it('names the tier, its model, and whether it has to be loaded', () => {
    expect(whoAnswers('fast', STATUS.tiers)).toBe(
      'fast will answer, with smol. It loads when you begin to write.',
    );
    expect(whoAnswers('primary', STATUS.tiers)).toBe('primary will answer, with gemma. It is in memory.');
  });

  it('leaves the choice to the router for auto', () => {
    expect(whoAnswers('auto', STATUS.tiers)).toContain('primary is in memory now');
    expect(whoAnswers('auto', [fast])).toContain('waits for its model to load');
  });

  it('says what is missing', () => {
    expect(whoAnswers('auto', [])).toContain('No tier has a model yet');
    expect(whoAnswers('gone', STATUS.tiers)).toContain('no longer exists');
    expect(whoAnswers('fast', [{ ...fast, model: null }, primary])).toContain('has no model yet');
  });
});

it('tells of a load how far it is', () => {
  const starting = { ...fast, state: 'starting' as const };
  expect(stateLabel(starting)).toBe('Loading…');
  expect(stateLabel({ ...starting, loaded_percent: 42 })).toBe('Loading, 42 %');
  expect(stateLabel({ ...fast, state: 'ready', loaded_percent: 100 })).toBe('Ready');
});

describe('the part of a wait that was loading', () => {
  it('is known when the load was seen from its beginning to its end', () => {
    const loads = new Loads();
    loads.observe(inState('stopped'), 0);
    loads.observe(inState('starting'), 110);
    loads.observe(inState('starting'), 500);
    loads.observe(inState('busy'), 1310);
    expect(loads.within('fast', 100, 2000)).toBe(1200);
  });

  it('is counted from the question when the load had begun before it', () => {
    const loads = new Loads();
    loads.observe(inState('starting'), 10);
    loads.observe(inState('ready'), 300);
    expect(loads.within('fast', 100, 2000)).toBe(200);
  });

  it.each([
    ['a load that had ended before the question', 400, 2000],
    ['a load that was seen to end only after the first word', 100, 200],
  ])('is not claimed for %s', (_name, since, until) => {
    const loads = new Loads();
    loads.observe(inState('starting'), 110);
    loads.observe(inState('ready'), 300);
    expect(loads.within('fast', since, until)).toBeNull();
  });

  it('is not claimed for a load that failed, nor for a tier that is not known', () => {
    const loads = new Loads();
    loads.observe(inState('starting'), 110);
    loads.observe(inState('failed'), 300);
    expect(loads.within('fast', 100, 2000)).toBeNull();
    expect(loads.within(null, 100, 2000)).toBeNull();
  });
});

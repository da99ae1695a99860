import { describe, expect, it } from 'vitest';
import type { TierState } from '../../platform/openapi';
import { STATUS } from '../../testing/host';
import { Loads } from './loads';
import { describeSelection, stateLabel } from './tiers';

const [fast, primary] = STATUS.tiers as [(typeof STATUS.tiers)[0], (typeof STATUS.tiers)[0]];
const inState = (state: TierState) => [{ ...fast, state }];

describe('the description of a selection', () => {
  it('names the tier, its model, and whether it is loaded', () => {
    expect(describeSelection('fast', STATUS.tiers)).toBe(
      'fast answers with smol. It loads when you start typing.',
    );
    expect(describeSelection('primary', STATUS.tiers)).toBe('primary answers with gemma, which is loaded.');
  });

  it('leaves the choice to the router for auto', () => {
    expect(describeSelection('auto', STATUS.tiers)).toContain('primary is loaded.');
    const far: (typeof STATUS.tiers)[0] = { ...primary, id: 'heavy', engine: 'endpoint', model: 'sonnet' };
    expect(describeSelection('heavy', [far])).toBe('heavy is available. It answers with sonnet.');
    expect(describeSelection('auto', [far])).toContain('heavy is available.');
    expect(describeSelection('auto', [fast])).toContain('waits until a model loads');
  });

  it('says what is missing', () => {
    expect(describeSelection('auto', [])).toContain('Choose a model to get started.');
    expect(describeSelection('gone', STATUS.tiers)).toContain('no longer exists');
    expect(describeSelection('fast', [{ ...fast, model: null }, primary])).toContain('has no model yet');
  });
});

it('calls an endpoint stopped, not unloaded', () => {
  expect(stateLabel({ ...fast, state: 'stopped' })).toBe('Not loaded');
  expect(stateLabel({ ...fast, engine: 'endpoint', state: 'stopped' })).toBe('Stopped');
});

it('shows the progress of a load', () => {
  const starting = { ...fast, state: 'starting' as const };
  expect(stateLabel(starting)).toBe('Loading…');
  expect(stateLabel({ ...starting, loaded_percent: 42 })).toBe('Loading, 42 %');
  expect(stateLabel({ ...fast, state: 'ready', loaded_percent: 100 })).toBe('Ready');
});

describe('the load time within a wait', () => {
  it('is known when the whole load was observed', () => {
    const loads = new Loads();
    loads.observe(inState('stopped'), 0);
    loads.observe(inState('starting'), 110);
    loads.observe(inState('starting'), 500);
    loads.observe(inState('busy'), 1310);
    expect(loads.within('fast', 100, 2000)).toBe(1200);
  });

  it('counts from the question when the load began earlier', () => {
    const loads = new Loads();
    loads.observe(inState('starting'), 10);
    loads.observe(inState('ready'), 300);
    expect(loads.within('fast', 100, 2000)).toBe(200);
  });

  it.each([
    ['a load that ended before the question', 400, 2000],
    ['a load that ended after the first token', 100, 200],
  ])('is unknown for %s', (_name, since, until) => {
    const loads = new Loads();
    loads.observe(inState('starting'), 110);
    loads.observe(inState('ready'), 300);
    expect(loads.within('fast', since, until)).toBeNull();
  });

  it('is unknown for a failed load and an unknown tier', () => {
    const loads = new Loads();
    loads.observe(inState('starting'), 110);
    loads.observe(inState('failed'), 300);
    expect(loads.within('fast', 100, 2000)).toBeNull();
    expect(loads.within(null, 100, 2000)).toBeNull();
  });
});

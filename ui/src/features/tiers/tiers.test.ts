import { describe, expect, it } from 'vitest';
import { STATUS } from '../../testing/host';
import { describeSelection, stateLabel, withDisplayNames, withIds } from './tiers';

const [fast, primary] = STATUS.tiers as [(typeof STATUS.tiers)[0], (typeof STATUS.tiers)[0]];

describe('the description of a selection', () => {
  it('names the tier, its model, and whether it is loaded', () => {
    expect(describeSelection('fast', STATUS.tiers)).toBe(
      'Fast answers with smol. It loads when you start typing.',
    );
    expect(describeSelection('primary', STATUS.tiers)).toBe('Everyday answers with gemma, which is loaded.');
  });

  it('leaves the choice to the router for auto', () => {
    expect(describeSelection('auto', STATUS.tiers)).toContain('Everyday is loaded.');
    const far: (typeof STATUS.tiers)[0] = { ...primary, id: 'heavy', engine: 'endpoint', model: 'sonnet' };
    expect(describeSelection('heavy', [far])).toBe('Deep is available. It answers with sonnet.');
    expect(describeSelection('auto', [far])).toContain('Deep is available.');
    expect(describeSelection('auto', [fast])).toContain('waits until a model loads');
  });

  it('says what is missing', () => {
    expect(describeSelection('auto', [])).toContain('Choose a model to get started.');
    expect(describeSelection('gone', STATUS.tiers)).toContain('no longer exists');
    expect(describeSelection('fast', [{ ...fast, model: null }, primary])).toContain('has no model yet');
  });
});

it('names tiers in the host’s sentences, and finds them by these names', () => {
  const text =
    'primary does not fit beside fast, heavy’s draft and (primary): heavy-2 is at /m/fast and breakfast';
  expect(withDisplayNames(text)).toBe(
    'Everyday does not fit beside Fast, heavy’s draft and (Everyday): heavy-2 is at /m/fast and breakfast',
  );
  expect(withDisplayNames("waiting for heavy's memory")).toBe("waiting for Deep's memory");
  expect(withIds('room Everyday deepseek')).toBe('room primary deepseek');
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

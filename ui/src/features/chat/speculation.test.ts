import { describe, expect, it } from 'vitest';
import { describeSpeculation } from './speculation';

const DRAFTED = { drafted: 1200, accepted: 900, by_model: 0, saved_ms: 4200, rested: true };

describe('the speculation of an answer', () => {
  it('is described by what predicted its tokens', () => {
    const saved = '4.2 s saved by speculation';
    expect(describeSpeculation(DRAFTED)).toEqual(['prompt lookup: 900 of 1,200 tokens accepted', saved]);
    const [model] = describeSpeculation({ ...DRAFTED, by_model: 1200 });
    expect(model).toBe('draft model: 900 of 1,200 tokens accepted');
    const [both] = describeSpeculation({ ...DRAFTED, by_model: 12 });
    expect(both).toBe('prompt lookup and draft model: 900 of 1,200 tokens accepted');
  });

  it('is off, or saves nothing, where it does not pay', () => {
    expect(describeSpeculation({ ...DRAFTED, saved_ms: -300 })).toHaveLength(1);
    const none = { ...DRAFTED, drafted: 0, accepted: 0, saved_ms: 0 };
    expect(describeSpeculation(none)).toEqual(['speculation off: slower, or not exact']);
  });
});

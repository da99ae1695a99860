import { describe, expect, it } from 'vitest';
import { type AnswerSource, factsOf } from './facts';

const ANSWER: AnswerSource = {
  tier: 'fast',
  model: 'smol',
  why: null,
  insteadOf: null,
  tokensPerSecond: 41.23,
  isEndpoint: false,
  firstTokenMs: 1700,
  loadMs: 598,
  context: null,
  experts: null,
};
const texts = (change: Partial<AnswerSource>) => factsOf({ ...ANSWER, ...change }).map(({ text }) => text);
const tokens = (answer_tokens: number) => ({ answer_tokens, prompt_tokens: 10, context_tokens: 4096 });

describe('the facts of an answer', () => {
  it('say what answered, how fast, and what it waited for', () => {
    expect(texts({})).toEqual(['fast', 'smol', '41.2 tok/s', '1.7 s to first word (0.6 s loading)']);
    expect(texts({ loadMs: null, firstTokenMs: 42 }).at(-1)).toBe('42 ms to first word');
    expect(texts({ model: 'fast', firstTokenMs: null })).toEqual(['fast', '41.2 tok/s']);
  });

  it('have a rate only where one was measured', () => {
    const rated = (change: Partial<AnswerSource>) => texts(change).some((text) => text.endsWith('tok/s'));
    expect(rated({ context: tokens(200) })).toBe(true);
    expect(rated({ context: tokens(1) })).toBe(false);
    expect(rated({ context: tokens(2), tokensPerSecond: 90_719 })).toBe(false);
    // Nine more tokens at 41 a second take less than a quarter of one.
    expect(rated({ context: tokens(10) })).toBe(false);
    expect(rated({ isEndpoint: true })).toBe(false);
    expect(rated({ tokensPerSecond: null })).toBe(false);
  });

  it('mark an answer of another tier than the chosen one', () => {
    expect(factsOf({ ...ANSWER, insteadOf: 'heavy', why: 'heavy: over_budget' })[0]).toEqual({
      text: 'fast, instead of heavy',
      title: 'heavy: over_budget',
      isReplacement: true,
    });
  });
});

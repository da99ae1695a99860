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
  times: { load_ms: 598, prefill_ms: 402, decode_ms: 4200, thinking_ms: null },
  context: null,
  experts: null,
};
const texts = (change: Partial<AnswerSource>) => factsOf({ ...ANSWER, ...change }).map(({ text }) => text);
const tokens = (answer_tokens: number) => ({ answer_tokens, prompt_tokens: 10, context_tokens: 4096 });

describe('the facts of an answer', () => {
  it('say what answered, how fast, and where its time went', () => {
    const wait = '1.7 s to first token (load 0.6 s, prompt 0.4 s)';
    expect(texts({})).toEqual(['Fast', 'smol', '41.2 tok/s', wait, '4.2 s generating']);
    const NONE = { load_ms: null, prefill_ms: null, decode_ms: null, thinking_ms: null };
    for (const [times, end] of [
      [{ ...NONE, load_ms: 598 }, ' (load 0.6 s)'],
      [{ ...NONE, prefill_ms: 402 }, ' (prompt 0.4 s)'],
      [{ ...NONE, load_ms: 3, prefill_ms: 20 }, ''],
      [null, ''],
    ] as const)
      expect(texts({ times }).at(-1)).toBe(`1.7 s to first token${end}`);
    expect(texts({ times: null, firstTokenMs: 42 }).at(-1)).toBe('42 ms to first token');
    const speculation = { drafted: 8, accepted: 6, by_model: 0, saved_ms: 0, rested: false };
    expect(texts({ times: { ...NONE, speculation } }).at(-1)).toBe('prompt lookup: 6 of 8 tokens accepted');
    expect(texts({ model: 'fast', firstTokenMs: null })).toEqual(['Fast', '41.2 tok/s', '4.2 s generating']);
  });

  it('have a rate only where one was measured', () => {
    const rated = (change: Partial<AnswerSource>) => texts(change).some((text) => text.endsWith('tok/s'));
    expect(rated({ context: tokens(200) })).toBe(true);
    expect(rated({ context: tokens(1) })).toBe(false);
    expect(rated({ context: tokens(2), tokensPerSecond: 90_719 })).toBe(false);
    // Nine more tokens at 41 a second take less than a quarter of one.
    expect(rated({ context: tokens(10) })).toBe(false);
    // An endpoint's server may have measured it.
    expect(rated({ isEndpoint: true })).toBe(true);
    expect(rated({ isEndpoint: true, times: null })).toBe(false);
    expect(rated({ tokensPerSecond: null })).toBe(false);
  });

  it('mark an answer of another tier than the chosen one', () => {
    expect(factsOf({ ...ANSWER, insteadOf: 'heavy', why: 'heavy: over_budget' })[0]).toEqual({
      text: 'Fast, instead of Deep',
      title: 'heavy: over_budget',
      isReplacement: true,
    });
  });
});

import { describe, expect, it } from 'vitest';
import type { Caution, Grounds } from '../../platform/openapi';
import { GIB, refused, verdict } from '../../testing/models';
import { summaryOf, warningOf, whyOf } from './verdict';

describe('a verdict', () => {
  it('says how a model runs, with what it needs', () => {
    expect(summaryOf(verdict())).toBe('Runs fully in memory: 3.5 GB of 12 GB.');
    const lines = [{ what: 'dense_weights' as const, bytes: GIB / 2 }];
    expect(summaryOf(verdict({ lines, total_bytes: GIB / 2 }))).toBe(
      'Loads beside a chat model: it needs 512 MB.',
    );
    const paged = [{ what: 'paged_experts' as const, bytes: 8 * GIB }];
    expect(summaryOf(verdict({ placement: 'cache', lines: paged, total_bytes: 11 * GIB }))).toBe(
      'Runs with 8 GB of its weights read from the disk as needed: it needs 19 GB, and the budget is 12 GB.',
    );
    expect(summaryOf(refused({ largest_context_tokens: 2048 }))).toMatch(
      /It fits with a context of 2,048 tokens\.$/,
    );
  });

  it('has the decimals that set what it needs apart from the budget', () => {
    expect(summaryOf(verdict({ total_bytes: 11.959 * GIB }))).toBe(
      'Runs fully in memory: 11.96 GB of 12.00 GB.',
    );
    expect(summaryOf(verdict({ total_bytes: 12 * GIB }))).toBe('Runs fully in memory: 12 GB of 12 GB.');
  });

  it('says all that one should know of a model that runs', () => {
    const cautions: Caution[] = [
      { kind: 'shorter_context', context_tokens: 8192 },
      { kind: 'part_on_gpu', layers: 64, layers_all: 65, limit_bytes: 11 * GIB },
    ];
    expect(warningOf(verdict({ cautions }))).toBe(
      'It was trained for a context of 8,192 tokens, so the tier uses that. 64 of its 65 layers fit the GPU’s 11 GB. The CPU computes the rest, which is slower.',
    );
    expect(warningOf(verdict())).toBe('');
  });
});

it('a quant is recommended for its bits and its published loss, if it has one', () => {
  const grounds: Grounds = { basis: 'largest', measured: null, perplexity_increase: null };
  expect(whyOf({ reason: null, grounds })).toBe('It is the largest that fits in memory.');
  expect(
    whyOf({ reason: null, grounds: { ...grounds, measured: 'Q8_0', perplexity_increase: 0.0004 } }),
  ).toBe(
    'It is the largest that fits in memory. Published for Q8_0 of Llama 3 8B: perplexity 0.0 % above 16 bits.',
  );
  expect(whyOf({ reason: null, grounds: null })).toBe('');
});

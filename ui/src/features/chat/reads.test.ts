import { describe, expect, it } from 'vitest';
import { describeReads } from './reads';

const READS = {
  hit_rate: 0.949,
  read_bytes: 31_600_000,
  wait_ms: 40,
  tokens: 10,
  layers: false,
  approximated: null,
};

describe('what an answer has read', () => {
  it('is told per token', () => {
    expect(describeReads(READS)).toEqual([
      '94 % of experts in memory',
      '3 MB read and 4 ms waited per token',
    ]);
    expect(describeReads({ ...READS, layers: true })[0]).toBe('94 % of layers in memory');
  });

  it('is described in full, or without the wait if that is unknown', () => {
    expect(describeReads({ ...READS, tokens: 0 })[1]).toBe('32 MB read from disk');
    expect(describeReads({ ...READS, wait_ms: null })[1]).toBe('3 MB read per token');
  });

  it('says that an answer is approximate, also of a model in memory', () => {
    const approximated = { changed: 0.5, lost_weight: null };
    const resident = { ...READS, hit_rate: 1, read_bytes: 0, wait_ms: 0, approximated };
    expect(describeReads(resident)).toEqual(['approximate: 50 % of experts replaced or left out']);
  });
});

import { describe, expect, it } from 'vitest';
import { STATUS } from '../../testing/host';
import { mergeStatus, readEntry } from './merge';

describe('the status', () => {
  it('is replaced by a snapshot and changed field by field', () => {
    const snapshot = mergeStatus(null, 'snapshot', JSON.stringify(STATUS));
    expect(snapshot).toEqual(STATUS);
    const swap = { used_bytes: 5, growth_bytes_per_minute: 1 };
    const changed = mergeStatus(snapshot, 'change', JSON.stringify({ swap }));
    expect(changed).toEqual({ ...STATUS, swap });
    const again = { ...STATUS, version: '0.2.0' };
    expect(mergeStatus(changed, 'snapshot', JSON.stringify(again))).toEqual(again);
  });

  it('takes a changed list as a whole: a tier that is gone does not stay', () => {
    const changed = mergeStatus(STATUS, 'change', JSON.stringify({ tiers: [STATUS.tiers[1]] }));
    expect(changed?.tiers.map((tier) => tier.id)).toEqual(['primary']);
  });

  it('does not change in place, so that the page sees a new object', () => {
    expect(mergeStatus(STATUS, 'change', '{"version":"9"}')).not.toBe(STATUS);
    expect(STATUS.version).toBe('0.1.0');
  });

  it.each([
    ['a change before the first snapshot', null, 'change', '{"version":"9"}'],
    ['an event of an unknown name', STATUS, 'news', '{"version":"9"}'],
    ['a body that is not JSON', STATUS, 'change', '{"version":'],
    ['a body that is a list', STATUS, 'change', '[1]'],
    ['an empty snapshot', STATUS, 'snapshot', 'null'],
  ] as const)('is left as it is by %s', (_name, status, event, data) => {
    expect(mergeStatus(status, event, data)).toBe(status);
  });
});

describe('an entry of the log', () => {
  it('is read where there is one', () => {
    const entry = { id: 1, at_ms: 2, kind: 'note', tier: null, model: null, sentence: 'x' };
    expect(readEntry(JSON.stringify(entry))).toEqual(entry);
    for (const other of ['', '[]', 'null', '{"id":1}']) expect(readEntry(other)).toBeNull();
  });
});

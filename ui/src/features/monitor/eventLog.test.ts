import { beforeEach, describe, expect, it } from 'vitest';
import { Api } from '../../lib/http';
import type { Entry, Kind } from '../../platform/openapi';
import { Network, refusal } from '../../testing/host';
import { EventLog, MAX_ENTRIES, PAGE } from './eventLog.svelte';

let network: Network;
let log: EventLog;
beforeEach(() => {
  network = new Network();
  log = new EventLog(new Api(async () => ({ url: '' })));
});

function entry(id: number, tier: string | null = 'fast', kind: Kind = 'load'): Entry {
  return { id, at_ms: id * 1000, kind, tier, model: null, sentence: `number ${id}` };
}

/** From `last` down to 1. */
function entries(last: number): Entry[] {
  return Array.from({ length: last }, (_, n) => entry(last - n));
}

const ids = () => log.entries?.map(({ id }) => id);

describe('the event log', () => {
  it('shows the newest entries first and older ones page by page', async () => {
    network.log = entries(PAGE + 3);
    await log.load();
    expect(ids()).toEqual(
      entries(PAGE + 3)
        .slice(0, PAGE)
        .map(({ id }) => id),
    );
    expect(log.more).toBe(true);
    await log.older();
    expect(ids()?.slice(-4)).toEqual([4, 3, 2, 1]);
    expect(log.more).toBe(false);
  });

  it('adds each live entry once, and only of the tier shown', async () => {
    network.log = [entry(2, 'heavy'), entry(1)];
    await log.show({ tier: 'heavy' });
    expect(ids()).toEqual([2]);
    log.add(entry(3));
    log.add(entry(4, null, 'alarm'));
    log.add(entry(5, 'heavy'));
    log.add(entry(5, 'heavy'));
    expect(ids()).toEqual([5, 2]);
    await log.show({ tier: '' });
    // This host has not stored the live entries.
    expect(ids()).toEqual([5, 2, 1]);
  });

  it('neither loses nor repeats entries that arrive while it loads', async () => {
    network.log = entries(2);
    const reading = log.load();
    log.add(entry(2));
    log.add(entry(3));
    await reading;
    expect(ids()).toEqual([3, 2, 1]);
  });

  it('ignores an answer that arrives after another tier was chosen', async () => {
    network.log = [entry(2, 'heavy'), entry(1)];
    const first = log.show({ tier: 'heavy' });
    await Promise.all([first, log.show({ tier: 'fast' })]);
    expect(ids()).toEqual([1]);
    expect(log.busy).toBe(false);
  });

  it('keeps a limited number of entries', async () => {
    network.log = entries(10);
    await log.load();
    for (let id = 11; id <= MAX_ENTRIES + 10; id += 1) log.add(entry(id));
    expect(log.entries).toHaveLength(MAX_ENTRIES);
    expect(ids()?.at(-1)).toBe(11);
    expect(log.more).toBe(true);
  });

  it('shows why it cannot be read, and keeps its entries', async () => {
    network.log = entries(1);
    await log.load();
    network.override = () => refusal(507, 'storage', 'the file is damaged');
    await log.load();
    expect(log.problem?.sentences).toBe('The file is damaged.');
    expect(ids()).toEqual([1]);
    network.override = () => null;
    await log.load();
    expect(log.problem).toBeNull();
  });
});

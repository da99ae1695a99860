import { beforeEach, describe, expect, it } from 'vitest';
import { Api } from '../../lib/http';
import type { Entry, Kind } from '../../platform/api';
import { Network, refusal } from '../../testing/host';
import { Log, MOST, PAGE } from './log.svelte';

let network: Network;
let log: Log;
beforeEach(() => {
  network = new Network();
  log = new Log(new Api(async () => ({ url: '' })));
});

function entry(id: number, tier: string | null = 'fast', kind: Kind = 'load'): Entry {
  return { id, at_ms: id * 1000, kind, tier, model: null, sentence: `number ${id}` };
}

/** From `last` down to 1. */
function entries(last: number): Entry[] {
  return Array.from({ length: last }, (_, n) => entry(last - n));
}

const ids = () => log.entries?.map(({ id }) => id);

describe('the log of why', () => {
  it('shows the newest first and older ones page by page until there are no more', async () => {
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

  it('adds what happens on top, once, and only of the tier that is shown', async () => {
    network.log = [entry(2, 'heavy'), entry(1)];
    await log.show('heavy');
    expect(ids()).toEqual([2]);
    log.add(entry(3));
    log.add(entry(4, null, 'alarm'));
    log.add(entry(5, 'heavy'));
    log.add(entry(5, 'heavy'));
    expect(ids()).toEqual([5, 2]);
    await log.show(null);
    // The host here has not kept what it has told.
    expect(ids()).toEqual([5, 2, 1]);
  });

  it('loses nothing that is told while it is read, and nothing twice', async () => {
    network.log = entries(2);
    const reading = log.load();
    log.add(entry(2));
    log.add(entry(3));
    await reading;
    expect(ids()).toEqual([3, 2, 1]);
  });

  it('forgets an answer that comes after another tier was chosen', async () => {
    network.log = [entry(2, 'heavy'), entry(1)];
    const first = log.show('heavy');
    await Promise.all([first, log.show('fast')]);
    expect(ids()).toEqual([1]);
    expect(log.busy).toBe(false);
  });

  it('keeps no more than it can show', async () => {
    network.log = entries(10);
    await log.load();
    for (let id = 11; id <= MOST + 10; id += 1) log.add(entry(id));
    expect(log.entries).toHaveLength(MOST);
    expect(ids()?.at(-1)).toBe(11);
    expect(log.more).toBe(true);
  });

  it('says why it cannot be read, and keeps what it has', async () => {
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

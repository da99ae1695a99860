import { describe, expect, it } from 'vitest';
import {
  count,
  dayAndTime,
  dayLabel,
  duration,
  fileSize,
  gibibytes,
  memory,
  moment,
  sentence,
  speed,
  timeLeft,
  windowUnits,
} from './format';

describe('formatters', () => {
  it('count memory in binary and files in decimal multiples', () => {
    expect(memory(16 * 2 ** 30)).toBe('16 GB');
    expect(memory(9.26 * 2 ** 30)).toBe('9.3 GB');
    expect(memory(512 * 2 ** 20)).toBe('512 MB');
    expect(memory(0)).toBe('0 B');
    expect(fileSize(98_200_000)).toBe('98 MB');
    expect(fileSize(11_400_000_000)).toBe('11.4 GB');
  });

  it('move to the next unit before 1,000', () => {
    expect(fileSize(999_700_000)).toBe('1 GB');
    expect(memory(1023.7 * 2 ** 20)).toBe('1 GB');
  });

  it('write the memory of a text of the host in the window’s units, but not a setting', () => {
    expect(windowUnits('it needs 3.5 GiB of 12 GiB; 68 MiB free')).toBe(
      'it needs 3.5 GB of 12 GB; 68 MB free',
    );
    expect(windowUnits('write it as 512MiB')).toBe('write it as 512MiB');
    expect(sentence('unloaded fast on quit, freed 68 MiB')).toBe('Unloaded fast on quit, freed 68 MB.');
  });

  it('make sentences of messages, keeping names at their start', () => {
    expect(sentence('the worker was killed')).toBe('The worker was killed.');
    expect(sentence('Is it there?')).toBe('Is it there?');
    expect(sentence('config.toml line 1: no such key')).toBe('config.toml line 1: no such key.');
    expect(sentence('tiers.fast.context: 100 tokens')).toBe('tiers.fast.context: 100 tokens.');
  });

  it('show negative and unknown amounts', () => {
    expect(memory(-(2 ** 20) * 12)).toBe('−12 MB');
    expect(memory(Number.NaN)).toBe('–');
  });

  it('give speeds one decimal below 100', () => {
    expect(speed(41.24)).toBe('41.2 tok/s');
    expect(speed(99.96)).toBe('100 tok/s');
    expect(speed(310.5)).toBe('311 tok/s');
  });

  it('choose the unit of a duration', () => {
    expect(duration(82.4)).toBe('82 ms');
    expect(duration(999.7)).toBe('1.0 s');
    expect(duration(1870)).toBe('1.9 s');
    expect(duration(59_960)).toBe('1 min 0 s');
    expect(duration(125_000)).toBe('2 min 5 s');
  });

  it('give the remaining time in a suitable unit', () => {
    expect([0, 12.2, 59, 60, 89, 3570, 3600, 8000, 86_400, 200_000].map(timeLeft)).toEqual([
      '1 s left',
      '13 s left',
      '59 s left',
      '1 min left',
      '1 min left',
      '1 h left',
      '1 h left',
      '2 h 13 min left',
      '24 h left',
      '2 days left',
    ]);
  });

  it('give sizes in columns of GiB two decimals', () => {
    expect([0, 2 ** 30, 10.754 * 2 ** 30].map(gibibytes)).toEqual(['0.00', '1.00', '10.75']);
  });

  it('separate thousands', () => {
    expect(count(131072)).toBe('131,072');
  });

  it('name a day by the calendar, not by elapsed hours', () => {
    const now = new Date(2026, 2, 10, 0, 30);
    const at = (...day: [number, number, number, number]) => new Date(...day).toISOString();
    expect(dayLabel(at(2026, 2, 10, 0), now)).toBe('Today');
    expect(dayLabel(at(2026, 2, 9, 23), now)).toBe('Yesterday');
    expect(dayLabel(at(2026, 2, 5, 12), now)).toBe('Previous 7 days');
    expect(dayLabel(at(2026, 1, 20, 12), now)).toBe('Previous 30 days');
    expect(dayLabel(at(2025, 1, 20, 12), now)).toBe('Older');
    expect(dayLabel('nonsense', now)).toBe('Older');
  });
});

it('has the day in lists that go back', () => {
  const now = new Date(2026, 10, 22, 9, 0, 0);
  expect(dayAndTime(new Date(2026, 10, 22, 4, 3, 5).getTime(), now)).toBe('Today, 04:03');
  expect(dayAndTime(new Date(2026, 10, 21, 23, 59, 59).getTime(), now)).toBe('21 Nov 23:59');
  expect(dayAndTime(Number.NaN, now)).toBe('–');
});

describe('a moment', () => {
  it('has seconds today and a date earlier', () => {
    const now = new Date(2026, 10, 22, 15, 0, 0);
    expect(moment(new Date(2026, 10, 22, 4, 3, 5).getTime(), now)).toBe('04:03:05');
    expect(moment(new Date(2026, 10, 21, 23, 59, 59).getTime(), now)).toBe('21 Nov 23:59');
    expect(moment(Number.NaN, now)).toBe('–');
  });
});

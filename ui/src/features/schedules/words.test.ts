import { describe, expect, it } from 'vitest';
import type { ScheduleConfig } from '../../platform/openapi';
import { describeRuns, describeSchedule, describeTime, problemOf } from './words';

const schedule = (parts: Partial<ScheduleConfig> = {}): ScheduleConfig => ({
  at: '07:00',
  task: 'brief',
  source: '~/logs',
  to: '~/briefs/{date}.md',
  ...parts,
});

describe('a schedule in words', () => {
  it('says when it runs', () => {
    expect(describeTime(schedule())).toBe('Every day at 07:00');
    expect(describeTime(schedule({ days: ['fri', 'mon', 'tue', 'wed', 'thu'] }))).toBe(
      'Every weekday at 07:00',
    );
    expect(describeTime(schedule({ days: ['sat', 'sun'] }))).toBe('Every Saturday and Sunday at 07:00');
    expect(describeTime(schedule({ days: ['wed', 'mon', 'fri'] }))).toBe(
      'Every Monday, Wednesday, and Friday at 07:00',
    );
  });

  it('says what it does', () => {
    expect(describeSchedule(schedule({ model: 'heavy' }))).toBe(
      'Every day at 07:00: Deep writes a brief of ~/logs and saves it as ~/briefs/{date}.md.',
    );
    expect(describeSchedule(schedule({ task: 'summarize', to: 'https://a.example/hook' }))).toBe(
      'Every day at 07:00: Tierbar summarizes ~/logs and sends it to https://a.example/hook.',
    );
  });

  it('says when it runs next, and how it ended', () => {
    const now = new Date(2026, 10, 26, 12);
    const at = (hours: number) => now.getTime() / 1000 + hours * 3600;
    const runs = { running: false, next_at: at(1), tried_at: at(-1), outcome: 'no model', failing: true };
    expect(describeRuns(runs, now)).toEqual({
      next: 'Next run: 13:00:00.',
      last: 'Failed (11:00:00): no model',
    });
    expect(describeRuns({ ...runs, running: true, outcome: null }, now)).toEqual({
      next: 'Running now.',
      last: null,
    });
    expect(describeRuns({ ...runs, next_at: null, failing: false }, now)).toEqual({
      next: 'Runs only while the app or tierbar serve is running.',
      last: 'Last run (11:00:00): no model',
    });
  });

  it('finds the field that a refusal is about', () => {
    expect(problemOf('night', 'schedules.night.to', '"b.md" is neither a full path nor a URL')).toEqual({
      field: 'to',
      text: '"b.md" is neither a full path nor a URL',
    });
    expect(problemOf('Night', 'schedules.Night', '"Night" cannot name a schedule')).toEqual({
      field: 'name',
      text: '"Night" cannot name a schedule',
    });
    expect(problemOf('night', undefined, 'the disk is full')).toEqual({
      field: null,
      text: 'the disk is full',
    });
  });
});

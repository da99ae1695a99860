import { moment, windowUnits } from '../../lib/format';
import { language } from '../../lib/language';
import type { ScheduleConfig, ScheduledTask, ScheduleStatus, Weekday } from '../../platform/openapi';
import { displayName } from '../tiers/tiers';

export const TASKS: Record<ScheduledTask, string> = { brief: 'Write a brief', summarize: 'Summarize' };

export const DAYS: Record<Weekday, { name: string; short: string }> = {
  mon: { name: 'Monday', short: 'Mon' },
  tue: { name: 'Tuesday', short: 'Tue' },
  wed: { name: 'Wednesday', short: 'Wed' },
  thu: { name: 'Thursday', short: 'Thu' },
  fri: { name: 'Friday', short: 'Fri' },
  sat: { name: 'Saturday', short: 'Sat' },
  sun: { name: 'Sunday', short: 'Sun' },
};

export const WEEK = Object.keys(DAYS) as Weekday[];
const WEEKDAYS = WEEK.slice(0, 5).join();
const WEEKEND = WEEK.slice(5).join();

/** Says when a schedule runs: `Every weekday at 07:00`. */
export function describeTime({ at, days = [] }: Pick<ScheduleConfig, 'at' | 'days'>): string {
  const chosen = WEEK.filter((day) => days.includes(day));
  if (chosen.length === 0 || chosen.length === 7) return `Every day at ${at}`;
  if (chosen.join() === WEEKDAYS) return `Every weekday at ${at}`;
  if (chosen.join() === WEEKEND) return `Every Saturday and Sunday at ${at}`;
  const names = new Intl.ListFormat(language(), { type: 'conjunction' }).format(
    chosen.map((day) => DAYS[day].name),
  );
  return `Every ${names} at ${at}`;
}

/** Says in a sentence what a schedule does. */
export function describeSchedule(schedule: ScheduleConfig): string {
  const { task, source, to, model = '' } = schedule;
  const when = describeTime(schedule);
  const target = /^https?:/.test(to) ? `sends it to ${to}` : `saves it as ${to}`;
  const who = model === '' ? 'Tierbar' : displayName(model);
  return task === 'brief'
    ? `${when}: ${who} writes a brief of ${source} and ${target}.`
    : `${when}: ${who} summarizes ${source} and ${target}.`;
}

/** Says what a schedule is doing, or when it runs next; and how its last run ended. */
export function describeRuns(
  status: Pick<ScheduleStatus, 'running' | 'next_at' | 'tried_at' | 'outcome' | 'failing'>,
  now: Date,
): { next: string; last: string | null } {
  const { running, next_at, tried_at, outcome, failing } = status;
  const next = running
    ? 'Running now.'
    : next_at == null
      ? 'Runs only while the app or tierbar serve is running.'
      : `Next run: ${moment(next_at * 1000, now)}.`;
  if (tried_at == null || outcome == null) return { next, last: null };
  const at = moment(tried_at * 1000, now);
  const how = windowUnits(outcome);
  return { next, last: failing ? `Failed (${at}): ${how}` : `Last run (${at}): ${how}` };
}

/** What is wrong with one field of a schedule: the host’s words, and the field that they are about. */
export interface FieldProblem {
  field: 'name' | 'at' | 'days' | 'task' | 'source' | 'to' | 'model' | 'words' | null;
  text: string;
}

const FIELDS = ['at', 'days', 'task', 'source', 'to', 'model', 'words'] as const;

/** Finds the field that a refusal of the host is about, by its key: `schedules.night.to`. */
export function problemOf(name: string, key: string | undefined, text: string): FieldProblem {
  const prefix = `schedules.${name}`;
  if (!key?.startsWith(prefix)) return { field: null, text };
  return { field: FIELDS.find((field) => key === `${prefix}.${field}`) ?? 'name', text };
}

import type { Kind } from '../../platform/api';

/** What a kind of happening is called, and how it is coloured. */
export const KINDS: Record<Kind, { label: string; tone: 'quiet' | 'ok' | 'warn' | 'danger' }> = {
  load: { label: 'Load', tone: 'quiet' },
  ready: { label: 'Ready', tone: 'ok' },
  unload: { label: 'Unload', tone: 'quiet' },
  refusal: { label: 'Refused', tone: 'warn' },
  failure: { label: 'Failed', tone: 'danger' },
  crash: { label: 'Crash', tone: 'danger' },
  alarm: { label: 'Alarm', tone: 'warn' },
  calm: { label: 'Calm', tone: 'ok' },
  step_down: { label: 'Step down', tone: 'warn' },
  pause: { label: 'Pause', tone: 'quiet' },
  resume: { label: 'Resume', tone: 'quiet' },
  note: { label: 'Note', tone: 'quiet' },
};

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** A moment in local time, with its day if that is not today: `14:03:05`, `20 Nov 14:03`. */
export function moment(ms: number, now: Date): string {
  const then = new Date(ms);
  if (Number.isNaN(then.getTime())) return '–';
  const two = (value: number) => String(value).padStart(2, '0');
  const time = `${two(then.getHours())}:${two(then.getMinutes())}`;
  if (then.toDateString() === now.toDateString()) return `${time}:${two(then.getSeconds())}`;
  return `${then.getDate()} ${MONTHS[then.getMonth()]} ${time}`;
}

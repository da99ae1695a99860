import { language } from '../../lib/language';

/** The spans that the history shows. Each is read again at its own pace, while the page is visible. */
export const RANGES = [
  { id: '10m', label: '10 Minutes', words: 'in the last 10 minutes', minutes: 10, everyMs: 15_000 },
  { id: '24h', label: '24 Hours', words: 'in the last 24 hours', minutes: 24 * 60, everyMs: 60_000 },
  { id: '30d', label: '30 Days', words: 'in the last 30 days', minutes: 30 * 24 * 60, everyMs: 600_000 },
] as const;

export type Range = (typeof RANGES)[number];

const two = (value: number) => String(value).padStart(2, '0');

/** Formats a time as a span needs it: `14:03:05` within minutes, `14:03` within a day, `20/11 14:00` beyond. */
export function timeIn(range: Range, seconds: number): string {
  const then = new Date(seconds * 1000);
  const time = `${two(then.getHours())}:${two(then.getMinutes())}`;
  if (range.id === '10m') return `${time}:${two(then.getSeconds())}`;
  if (range.id === '24h') return time;
  return `${then.toLocaleDateString(language(), { day: 'numeric', month: 'short' })} ${time}`;
}

import { language } from './language';

/** Formats a number with so many digits after the decimal point, or with up to `most`. */
export function decimal(value: number, digits: number, most = digits): string {
  return value.toLocaleString(language(), {
    minimumFractionDigits: digits,
    maximumFractionDigits: most,
    useGrouping: false,
  });
}

/** Chooses the form for a number, which replaces `#`: `plural(2, ['# model', '# models'])`. The build adds `rule`. */
export function plural(n: number, forms: string[], rule = (n: number) => (n === 1 ? 0 : 1)): string {
  return (forms[rule(n)] ?? forms.at(-1) ?? '').replace('#', count(n));
}

/** Formats memory as Activity Monitor does: binary multiples with decimal names, so that a 16 GB Mac has 16 GB. */
export function memory(bytes: number): string {
  return scaled(bytes, 1024);
}

/** Formats file sizes as the Finder does. */
export function fileSize(bytes: number): string {
  return scaled(bytes, 1000);
}

const UNITS = [
  (figure: string) => `${figure} B`,
  (figure: string) => `${figure} KB`,
  (figure: string) => `${figure} MB`,
  (figure: string) => `${figure} GB`,
  (figure: string) => `${figure} TB`,
];

function scaled(bytes: number, base: number): string {
  if (!Number.isFinite(bytes)) return '–';
  const sign = bytes < 0 ? '−' : '';
  let value = Math.abs(bytes);
  let unit = 0;
  // 999.7 MB would print as 1000 MB: move on as soon as rounding reaches the next unit.
  while (unit < UNITS.length - 1 && Math.round(value) >= base) {
    value /= base;
    unit += 1;
  }
  const digits = unit >= 3 && value < 99.95 ? 1 : 0;
  const figure = `${sign}${decimal(value, 0, digits)}`;
  return UNITS[unit]?.(figure) ?? figure;
}

/** Formats memory as a number of GB without the unit, for columns. */
export function gibibytes(bytes: number): string {
  return decimal(bytes / 2 ** 30, 2);
}

/** Formats a duration in seconds, in one or two units. */
export function span(seconds: number): string {
  if (seconds < 60) return `${Math.max(Math.ceil(seconds), 1)} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours >= 48) return `${Math.round(minutes / 1440)} days`;
  return minutes % 60 === 0 ? `${hours} h` : `${hours} h ${minutes % 60} min`;
}

/** Formats the remaining time. */
export function timeLeft(seconds: number): string {
  return `${span(seconds)} left`;
}

/** Tokens per second. */
export function speed(tokensPerSecond: number): string {
  return `${decimal(tokensPerSecond, tokensPerSecond >= 99.95 ? 0 : 1)} tok/s`;
}

export function duration(ms: number): string {
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 59_950) return `${decimal(ms / 1000, 1)} s`;
  const seconds = Math.round(ms / 1000);
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

/** Formats a whole number with thousands separators. */
export function count(value: number): string {
  return value.toLocaleString(language());
}

/** Writes the memory in a text of the host as `memory` does: the host says GiB, and this window GB. Settings' values stay. */
export function windowUnits(text: string): string {
  return text.replace(/(\d )([KMGT])iB\b/g, '$1$2B');
}

/** Turns a message of the host into a sentence. A name at its start, such as a file's, keeps its case. */
export function sentence(text: string): string {
  const begun = windowUnits(text).replace(
    /^[a-z]+(?=[ ,])/,
    (word) => word.charAt(0).toUpperCase() + word.slice(1),
  );
  return /[.!?…]$/.test(begun) ? begun : `${begun}.`;
}

/** Joins names: “A, B and C”. */
export function list(names: string[]): string {
  const order = language() === 'en' ? 'en-GB' : language();
  return new Intl.ListFormat(order, { type: 'conjunction' }).format(names);
}

/** Returns the heading of that day's chats in the history. */
export function dayLabel(iso: string, now: Date): string {
  const then = new Date(iso);
  if (Number.isNaN(then.getTime())) return 'Older';
  const midnight = (date: Date) => new Date(date.getFullYear(), date.getMonth(), date.getDate()).getTime();
  const days = Math.round((midnight(now) - midnight(then)) / 86_400_000);
  if (days <= 0) return 'Today';
  if (days === 1) return 'Yesterday';
  if (days < 7) return 'Previous 7 days';
  if (days < 30) return 'Previous 30 days';
  return 'Older';
}

/** Formats a time of a list that goes back days, with its day: `Today, 14:03`, `20 Nov 14:03`. */
export function dayAndTime(ms: number, now: Date): string {
  const time = moment(ms, now);
  const isToday = new Date(ms).toDateString() === now.toDateString();
  return isToday ? `Today, ${time.slice(0, 5)}` : time;
}

/** Formats a time in the local time zone, with the date if it is not today: `14:03:05`, `20 Nov 14:03`. */
export function moment(ms: number, now: Date): string {
  const then = new Date(ms);
  if (Number.isNaN(then.getTime())) return '–';
  const two = (value: number) => String(value).padStart(2, '0');
  const time = `${two(then.getHours())}:${two(then.getMinutes())}`;
  if (then.toDateString() === now.toDateString()) return `${time}:${two(then.getSeconds())}`;
  // English has the day first, as its times have 24 hours.
  const order = language() === 'en' ? 'en-GB' : language();
  return `${then.toLocaleDateString(order, { day: 'numeric', month: 'short' })} ${time}`;
}

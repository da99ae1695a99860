import { plural } from '../../lib/format';

/** Formats a duration of the configuration, such as `10m`, as `10 minutes`. */
export function formatDuration(text: string): string {
  const [, number, unit] = /^(\d+)([smh])$/.exec(text) ?? [];
  if (!number || !unit) return text;
  if (unit === 's') return plural(Number(number), ['# second', '# seconds']);
  if (unit === 'm') return plural(Number(number), ['# minute', '# minutes']);
  return plural(Number(number), ['# hour', '# hours']);
}

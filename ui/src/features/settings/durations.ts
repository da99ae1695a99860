/** Formats a duration of the configuration, such as `10m`, as `10 minutes`. */
export function formatDuration(text: string): string {
  const [, number, unit] = /^(\d+)([smh])$/.exec(text) ?? [];
  if (!number || !unit) return text;
  const noun = { s: 'second', m: 'minute', h: 'hour' }[unit] ?? unit;
  return `${number} ${noun}${number === '1' ? '' : 's'}`;
}

/** A length of time of the configuration, such as `10m`, in words. */
export function span(text: string): string {
  const [, number, unit] = /^(\d+)([smh])$/.exec(text) ?? [];
  if (!number || !unit) return text;
  const word = { s: 'second', m: 'minute', h: 'hour' }[unit] ?? unit;
  return `${number} ${word}${number === '1' ? '' : 's'}`;
}

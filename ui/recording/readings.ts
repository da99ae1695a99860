const GIB = 2 ** 30;
const MIB = 2 ** 20;

/** Readings of a Mac of 16 GB, for `TIERBAR_SCRIPTED_READINGS`: from `after` seconds on, other apps take the memory for a while. */
export function readings(after: number): string {
  const calm = {
    ram_total_bytes: 16 * GIB,
    ram_available_bytes: Math.round(7.4 * GIB),
    pressure: 'normal',
    swap_total_bytes: 4 * GIB,
    swap_used_bytes: Math.round(0.4 * GIB),
    swap_out_bytes_per_second: 0,
    disk_read_bytes_per_second: 0,
  };
  const lines: object[] = [calm];
  for (let second = 0; second <= 14; second += 1)
    lines.push({
      at_ms: (after + second) * 1000,
      ram_available_bytes: Math.round(Math.max(7.4 - second * 0.8, 0.9) * GIB),
      swap_used_bytes: Math.round(0.4 * GIB + second * 70 * MIB),
      swap_out_bytes_per_second: 70 * MIB,
      pressure: second < 7 ? 'normal' : 'warning',
    });
  lines.push({
    at_ms: (after + 15) * 1000,
    ram_available_bytes: Math.round(6.1 * GIB),
    pressure: 'normal',
    swap_out_bytes_per_second: 0,
  });
  return lines.map((line) => `${JSON.stringify(line)}\n`).join('');
}

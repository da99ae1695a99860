import { fileSize, memory, speed } from '../../lib/format';
import type { History } from '../../platform/openapi';
import { type Columns, most, PRESSURES, peak } from './columns';
import { type Range, timeIn } from './range';

/** What each chart shows, in a sentence: the greatest figures of the span. */
export function summarize(history: History, columns: Columns, range: Range) {
  const words = spanOf(history, range);
  const models = peak(history, (point) => point.models_bytes);
  const used = peak(history, (point) => point.ram_used_bytes);
  const swap = peak(history, (point) => point.swap_used_bytes);
  const growth = most(columns.growth);
  const pressure = PRESSURES[most(columns.pressure) ?? -1];
  const decode = peak(history, (point) => point.decode_tokens_per_second);
  const reads = peak(history, (point) => point.disk_read_bytes_per_second);
  const none = `No readings ${words}.`;
  return {
    memory:
      models === null
        ? used === null
          ? none
          : `At most ${memory(used)} of RAM was in use ${words}.`
        : models === 0
          ? `No model was loaded ${words}.`
          : `Models used ${memory(models)} at most ${words}.`,
    swap:
      swap === null
        ? none
        : swap === 0
          ? `No swap was used ${words}.`
          : `Swap was ${memory(swap)} at most ${words}.`,
    growth:
      growth === null
        ? none
        : growth <= 0
          ? `Swap did not grow ${words}.`
          : `Swap grew by ${memory(growth)} per minute at most ${words}.`,
    pressure: {
      normal: `Memory pressure was normal ${words}.`,
      warning: `Memory pressure was high at times ${words}.`,
      critical: `Memory pressure was critical at times ${words}.`,
      none,
    }[pressure ?? 'none'],
    decode:
      decode === null ? `No answers ${words}.` : `Answers were generated at up to ${speed(decode)} ${words}.`,
    reads: reads === null ? none : `The disk was read at up to ${fileSize(reads)}/s ${words}.`,
  };
}

/** Says when the readings are from: those of a span that began before them tell nothing of its beginning. */
function spanOf({ step_seconds, points }: History, range: Range): string {
  const [first, last] = [points[0]?.at, points.at(-1)?.at];
  if (first === undefined || last === undefined) return range.words;
  const whole = first <= last - range.minutes * 60 + 2 * step_seconds;
  return whole ? range.words : `from ${timeIn(range, first)} on`;
}

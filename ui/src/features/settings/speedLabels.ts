import { plural } from '../../lib/format';
import { language } from '../../lib/language';
import type { BenchMemory, Outcome, Settings, TierConfig } from '../../platform/openapi';

/** Marks the outcome of each tuned setting. */
export const MARK: Record<Outcome, string> = {
  base: '',
  faster: '✓ ',
  not_faster: '',
  told: '',
  failed: '✗ ',
};

/** Formats settings, such as `4 threads, batch 512, f16`. */
export function formatSettings({ threads, batch, gpu_layers, kv_cache }: Settings): string {
  const cpu = threads === 0 ? 'automatic threads' : plural(threads, ['# thread', '# threads']);
  const layers = gpu_layers === null ? '' : `, ${gpu_layers} layers on the GPU`;
  return `${cpu}, batch ${batch}${layers}, ${kv_cache}`;
}

/** Whether the tier has these settings. */
export function hasSettings(settings: Settings, tier: TierConfig): boolean {
  return (
    settings.threads === tier.threads &&
    settings.batch === tier.batch &&
    settings.gpu_layers === (tier.gpu_layers ?? null) &&
    settings.kv_cache === tier.kv_cache
  );
}

/** Returns the settings that differ from the tier's. */
export function diffSettings(tier: TierConfig, settings: Settings): Partial<TierConfig> {
  const patch: Partial<TierConfig> = {};
  if (settings.threads !== tier.threads) patch.threads = settings.threads;
  if (settings.batch !== tier.batch) patch.batch = settings.batch;
  if (settings.gpu_layers !== (tier.gpu_layers ?? null)) patch.gpu_layers = settings.gpu_layers;
  if (settings.kv_cache !== tier.kv_cache) patch.kv_cache = settings.kv_cache;
  return patch;
}

/** Describes what differs, such as `Threads 4 instead of automatic`. */
export function describeChanges(before: Settings, after: Settings): string {
  const threads = (value: number) => (value === 0 ? /* @wc-include */ 'automatic' : String(value));
  const layers = (value: number | null) => (value === null ? 'as many as fit' : String(value));
  const text = [
    ['Threads', threads(before.threads), threads(after.threads)],
    ['Batch size', String(before.batch), String(after.batch)],
    ['GPU layers', layers(before.gpu_layers), layers(after.gpu_layers)],
    ['KV cache', before.kv_cache, after.kv_cache],
  ]
    .filter(([, old, now]) => old !== now)
    .map(([name, old, now]) => `${name} ${now} instead of ${old}`)
    .join(', ');
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Returns all memory that the engine had allocated. */
export function allocatedBytes(memory: BenchMemory): number {
  return memory.weights_mapped_bytes + memory.weights_bytes + memory.kv_bytes + memory.compute_bytes;
}

/** Formats a time in the local time zone, such as `21 Nov, 20:00`. */
export function formatTime(iso: string): string {
  const moment = new Date(iso);
  return Number.isNaN(moment.getTime())
    ? 'at an unknown time'
    : moment.toLocaleString(language(), {
        day: 'numeric',
        month: 'short',
        hour: '2-digit',
        minute: '2-digit',
        hourCycle: 'h23',
      });
}

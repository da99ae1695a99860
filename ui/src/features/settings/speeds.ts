import type { BenchMemory, Outcome, Settings, TierConfig } from '../../platform/api';

export const MARK: Record<Outcome, string> = {
  base: '',
  faster: '✓ ',
  not_faster: '',
  told: '',
  failed: '✗ ',
};

/** Settings in a few words, such as `4 threads, batch 512, f16`. */
export function named({ threads, batch, gpu_layers, kv_cache }: Settings): string {
  const computing = threads === 0 ? 'usual threads' : threads === 1 ? '1 thread' : `${threads} threads`;
  const layers = gpu_layers === null ? '' : `, ${gpu_layers} layers on the GPU`;
  return `${computing}, batch ${batch}${layers}, ${kv_cache}`;
}

/** Whether the tier has these settings. */
export function asConfigured(settings: Settings, tier: TierConfig): boolean {
  return (
    settings.threads === tier.threads &&
    settings.batch === tier.batch &&
    settings.gpu_layers === (tier.gpu_layers ?? null) &&
    settings.kv_cache === tier.kv_cache
  );
}

/** The settings that the tier does not have yet. */
export function difference(tier: TierConfig, settings: Settings): Partial<TierConfig> {
  const patch: Partial<TierConfig> = {};
  if (settings.threads !== tier.threads) patch.threads = settings.threads;
  if (settings.batch !== tier.batch) patch.batch = settings.batch;
  if (settings.gpu_layers !== (tier.gpu_layers ?? null)) patch.gpu_layers = settings.gpu_layers;
  if (settings.kv_cache !== tier.kv_cache) patch.kv_cache = settings.kv_cache;
  return patch;
}

/** What differs, such as `Threads 4 in place of its own choice`. */
export function changes(before: Settings, after: Settings): string {
  const threads = (value: number) => (value === 0 ? 'its own choice' : String(value));
  const layers = (value: number | null) => (value === null ? 'as many as fit' : String(value));
  const told = [
    ['threads', threads(before.threads), threads(after.threads)],
    ['batch', String(before.batch), String(after.batch)],
    ['GPU layers', layers(before.gpu_layers), layers(after.gpu_layers)],
    ['KV cache', before.kv_cache, after.kv_cache],
  ]
    .filter(([, old, now]) => old !== now)
    .map(([name, old, now]) => `${name} ${now} in place of ${old}`)
    .join(', ');
  return told.charAt(0).toUpperCase() + told.slice(1);
}

/** All that the engine had allocated. */
export function allocated(memory: BenchMemory): number {
  return memory.weights_mapped_bytes + memory.weights_bytes + memory.kv_bytes + memory.compute_bytes;
}

/** A moment as people say it, in this machine's own time. */
export function when(iso: string): string {
  const moment = new Date(iso);
  return Number.isNaN(moment.getTime())
    ? 'once'
    : moment.toLocaleString('en', {
        day: 'numeric',
        month: 'short',
        hour: '2-digit',
        minute: '2-digit',
        hourCycle: 'h23',
      });
}

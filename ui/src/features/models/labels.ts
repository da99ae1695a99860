import { count, decimal, fileSize, timeLeft } from '../../lib/format';
import type {
  CatalogModel,
  DownloadState,
  DownloadStatus,
  Keeper,
  LineKind,
  Modality,
  ModelKind,
  OfferedFile,
  OfferedProjector,
  Paging,
  Placement,
  QuantLoss,
  SpeedEstimate,
  Verdict,
} from '../../platform/openapi';

export const KEEPER: Record<Keeper, string> = {
  tierbar: 'Tierbar',
  folder: 'Folder',
  lm_studio: 'LM Studio',
  ollama: 'Ollama',
  hugging_face: 'Hugging Face',
};

/** Where models go that do not chat, and the labels of the button for it. */
export const SLOT: Record<ModelKind, { tier: string; use: string; stop: string } | null> = {
  chat: null,
  embedding: { tier: 'embedder', use: 'Use as Embedder', stop: 'Stop Using as Embedder' },
  reranking: { tier: 'reranker', use: 'Use as Reranker', stop: 'Stop Using as Reranker' },
};

export const LINE: Record<LineKind, string> = {
  dense_weights: 'Weights',
  embeddings: 'Embeddings',
  paged_weights: 'Weights on disk',
  resident_experts: 'Experts in memory',
  expert_cache: 'Expert cache',
  layer_cache: 'Layers in memory',
  paged_experts: 'Experts on disk',
  kv_cache: 'KV cache',
  compute_buffers: 'Compute buffers',
  checkpoints: 'Context checkpoints',
  draft_model: 'Draft model',
  projector: 'Media projector',
  command: 'Command',
  embedder: 'Embedder reserve',
  app: 'Tierbar',
};

/** The color of each line in the bar. */
export const GROUP: Record<LineKind, 'weights' | 'cache' | 'buffers' | 'rest' | 'paged'> = {
  dense_weights: 'weights',
  embeddings: 'weights',
  paged_weights: 'paged',
  resident_experts: 'weights',
  expert_cache: 'weights',
  layer_cache: 'weights',
  paged_experts: 'paged',
  kv_cache: 'cache',
  compute_buffers: 'buffers',
  checkpoints: 'cache',
  draft_model: 'weights',
  projector: 'weights',
  command: 'weights',
  embedder: 'rest',
  app: 'rest',
};

export type Fit = 'fits' | 'tight' | 'disk' | 'refused';

export const FIT: Record<Fit, string> = {
  fits: 'Fits',
  tight: 'Tight',
  disk: 'Reads from disk',
  refused: 'Too large',
};

/** The same within a sentence. */
export const FIT_WITHIN: Record<Fit, string> = {
  fits: /* @wc-include */ 'fits',
  tight: /* @wc-include */ 'tight',
  disk: 'reads from disk',
  refused: 'too large',
};

/** The share of the budget from which a model counts as tight: little is left for a longer context. */
const TIGHT = 0.9;

/** Returns a verdict in one word. Tight: nearly fills the budget, or not all of its layers fit on the GPU. */
export function fitOf({ placement, total_bytes, budget_bytes, gpu }: Verdict): Fit {
  if (placement !== 'resident') return PLACED[placement];
  const full = total_bytes > TIGHT * budget_bytes;
  return full || (gpu && gpu.layers < gpu.layers_all) ? 'tight' : 'fits';
}

/** The fit of a model of which only the placement is known. */
export const PLACED: Record<Placement, Fit> = {
  resident: 'fits',
  mmap: 'disk',
  advise: 'disk',
  cache: 'disk',
  stream: 'disk',
  refused: 'refused',
};

/** How much worse than the model in 16 bits a quant answers. */
export const LOSS: Record<QuantLoss, string> = {
  none: 'The original',
  negligible: 'Nearly the original',
  slight: 'Slight loss',
  noticeable: 'Noticeable loss',
  heavy: 'Heavy loss',
};

/** The same within a sentence. */
const LOSS_WITHIN: Record<QuantLoss, string> = {
  none: 'the original',
  negligible: 'nearly the original',
  slight: 'slight loss',
  noticeable: 'noticeable loss',
  heavy: 'heavy loss',
};

/** Where the limits between them are measured. */
export const LOSS_SOURCE = 'https://github.com/ggml-org/llama.cpp/blob/master/tools/perplexity/README.md';

/** The expected speed by a way to page experts. */
export const PAGED: Record<Paging, string> = {
  cache: 'With a cache of experts',
  advise: 'With experts read ahead',
  'advise-gpu': 'With experts read ahead, prompts on the GPU',
  mmap: 'Left to the system',
  stream: 'With layers read from disk',
  auto: '',
  off: '',
};

/** Formats a range of tokens per second, with as many digits as are significant. */
export function expectedSpeed({ low, high }: Pick<SpeedEstimate, 'low' | 'high'>): string {
  const digits = (value: number) => decimal(value, value < 10 ? 1 : 0);
  const [from, to] = [digits(low), digits(high)];
  return from === to ? `${from} tok/s` : `${from} to ${to} tok/s`;
}

/** Describes how far the measured speed is from the expected range. */
export function speedError(error: number): string {
  const percent = Math.round(Math.abs(error) * 100);
  if (percent === 0) return 'as expected';
  return error < 0 ? `${percent} % slower than expected` : `${percent} % faster than expected`;
}

export const STATE: Record<DownloadState, string> = {
  queued: 'Queued',
  downloading: 'Downloading',
  waiting: 'Waiting',
  verifying: 'Verifying',
  paused: 'Paused',
  failed: 'Failed',
  done: 'Downloaded and verified',
};

export function isUnderWay({ state }: DownloadStatus): boolean {
  return state === 'queued' || state === 'downloading' || state === 'waiting' || state === 'verifying';
}

/** Returns 0 to 1; `null` while the size is unknown. */
export function share({ received_bytes, total_bytes }: DownloadStatus): number | null {
  return total_bytes ? Math.min(received_bytes / total_bytes, 1) : null;
}

/** Rounds down, so that 100 % means complete. */
export function percent(download: DownloadStatus): string | null {
  const part = share(download);
  return part === null ? null : `${Math.floor(part * 100)} %`;
}

/** Returns state, amounts, rate and time left. */
export function progressText(download: DownloadStatus): string {
  const { state, received_bytes, total_bytes, bytes_per_second, eta_seconds } = download;
  if (state === 'done') return [STATE.done, fileSize(total_bytes ?? received_bytes)].join(' · ');
  const live = state === 'downloading';
  return [
    STATE[state],
    total_bytes === null
      ? fileSize(received_bytes)
      : `${fileSize(received_bytes)} of ${fileSize(total_bytes)}`,
    live && bytes_per_second > 0 ? `${fileSize(bytes_per_second)}/s` : null,
    live && eta_seconds !== null ? timeLeft(eta_seconds) : null,
  ]
    .filter(Boolean)
    .join(' · ');
}

const MODALITY: Record<Modality, string> = {
  text: /* @wc-include */ 'text',
  image: /* @wc-include */ 'images',
  audio: /* @wc-include */ 'sound',
};

/** Lists what a message may contain: “text, images and sound”. */
export function listModalities(modalities: Modality[]): string {
  const names = modalities.map((modality) => MODALITY[modality]);
  const last = names.pop();
  return names.length > 0 ? `${names.join(', ')} and ${last}` : (last ?? '');
}

/** Names what a projector adds to text; both where its header was not read. */
export function addedBy({ input_modalities }: Pick<OfferedProjector, 'input_modalities'>): string {
  const added = input_modalities.filter((modality) => modality !== 'text');
  return listModalities(added.length > 0 ? added : ['image', 'audio']);
}

/** Labels the choice of a projector, with its size and that of all, as far as they are known. */
export function includes(added: string, projector: number | null, model: number | null): string {
  if (projector === null) return `Include ${added}`;
  if (model === null) return `Include ${added} (adds ${fileSize(projector)})`;
  return `Include ${added} (adds ${fileSize(projector)}, ${fileSize(model + projector)} in total)`;
}

/** Returns the sizes of a download with its projector: “3.1 GB + 1.0 GB for images and sound”. */
export function sizes({ files }: Pick<DownloadStatus, 'files'>): string | null {
  const sum = (wanted: boolean) =>
    files
      .filter(({ name }) => name.toLowerCase().includes('mmproj') === wanted)
      .reduce<number | null>(
        (sum, { size_bytes }) => (sum === null || size_bytes === null ? null : sum + size_bytes),
        0,
      );
  const [model, projector] = [sum(false), sum(true)];
  return model && projector ? `${fileSize(model)} + ${fileSize(projector)} for images and sound` : null;
}

/** Returns a file's name without folders and extension. */
export function stem(file: string): string {
  return (file.split('/').at(-1) ?? file).replace(/\.gguf$/i, '');
}

/** Formats a context as model cards do, such as 128K. */
export function contextLabel(tokens: number): string {
  if (tokens < 1024 || tokens % 512 !== 0) return count(tokens);
  return tokens % 2 ** 20 === 0 ? `${tokens / 2 ** 20}M` : `${tokens / 1024}K`;
}

/** Returns the text of an option of a list of quants. */
export function quantLabel(file: OfferedFile): string {
  return [
    file.quant,
    file.size_bytes === null ? 'size unknown' : fileSize(file.size_bytes),
    file.fit ? FIT_WITHIN[fitOf(file.fit)] : null,
    file.loss ? LOSS_WITHIN[file.loss] : null,
    file.recommended ? /* @wc-include */ 'recommended' : null,
  ]
    .filter(Boolean)
    .join(', ');
}

/** Returns the quant to show first: the recommended one, else the first that is not refused. */
export function preselected(files: OfferedFile[]): OfferedFile | undefined {
  return (
    files.find((file) => file.recommended) ??
    files.find((file) => file.fit?.placement !== 'refused') ??
    files[0]
  );
}

/** Returns what a model takes and can do, such as `Text and images · thinking · tools · 256K context`. */
export function abilities({ capabilities, context_train }: CatalogModel): string {
  const inputs = listModalities(capabilities.inputs);
  return [
    inputs.charAt(0).toUpperCase() + inputs.slice(1),
    capabilities.thinking && /* @wc-include */ 'thinking',
    capabilities.tools && /* @wc-include */ 'tools',
    context_train !== null && `${contextLabel(context_train)} context`,
  ]
    .filter(Boolean)
    .join(' · ');
}

import type {
  CatalogModel,
  DownloadStatus,
  LibraryModel,
  ModelAccount,
  OfferedFile,
  Verdict,
} from '../platform/openapi';

export const GIB = 2 ** 30;

export function account(parts: Partial<ModelAccount> = {}): ModelAccount {
  return {
    architecture: 'llama',
    kind: 'chat',
    name: null,
    quant: 'Q4_1',
    file_bytes: 98_000_000,
    parts: 1,
    dense_bytes: 80_000_000,
    embedding_bytes: 18_000_000,
    per_layer_embedding_bytes: 0,
    expert_bytes: 0,
    feed_forward_bytes: 0,
    parameters: 135_000_000,
    tied_output: true,
    layers: 30,
    heads: 9,
    kv_heads: 3,
    experts: 0,
    experts_used: 0,
    embedding: 576,
    vocabulary: 49152,
    context_train: 8192,
    kv: { full_elements_per_token: 11520, sliding_elements_per_cell: 0, window: 0, state_bytes: 0 },
    chat_template: true,
    thinking: false,
    tools: false,
    ...parts,
  };
}

/** On a 16 GB machine whose models may take 12 GiB. */
export function verdict(parts: Partial<Verdict> = {}): Verdict {
  return {
    placement: 'resident',
    summary: 'Runs fully in memory: 3.5 of 12.0 GiB.',
    warning: null,
    lines: [
      { what: 'dense_weights', bytes: 2.5 * GIB },
      { what: 'kv_cache', bytes: 0.75 * GIB },
      { what: 'app', bytes: 0.25 * GIB },
    ],
    total_bytes: 3.5 * GIB,
    budget_bytes: 12 * GIB,
    ram_bytes: 16 * GIB,
    context_tokens: 4096,
    kv_cache: 'f16',
    largest_context_tokens: 65536,
    gpu: null,
    speed: null,
    instead: null,
    estimated: false,
    ...parts,
  };
}

export function refused(parts: Partial<Verdict> = {}): Verdict {
  return verdict({
    placement: 'refused',
    summary:
      'Does not fit this machine: with a context of 4096 tokens it needs 20.0 GiB, and the budget is 12.0 GiB.',
    lines: [{ what: 'dense_weights', bytes: 20 * GIB }],
    total_bytes: 20 * GIB,
    largest_context_tokens: null,
    instead: {
      quant: 'Q2_K',
      reference: 'o/big-GGUF:Q2_K',
      size_bytes: 9_000_000_000,
      placement: 'mmap',
      reason: 'None fits in memory. Of those that run, it reads the least from the disk.',
      grounds: { basis: 'least_from_disk', measured: null, perplexity_increase: null },
    },
    ...parts,
  });
}

export function localModel(id: string, parts: Partial<LibraryModel> = {}): LibraryModel {
  return {
    id,
    path: `/data/models/${id}.gguf`,
    size_bytes: 98_000_000,
    keeper: 'tierbar',
    account: account(),
    error: null,
    reference: null,
    sha256: null,
    input_modalities: ['text'],
    tiers: [],
    fit: verdict(),
    ...parts,
  };
}

export function offered(reference: string, parts: Partial<OfferedFile> = {}): OfferedFile {
  const quant = reference.split(':').at(-1) ?? '';
  return {
    quant,
    reference,
    file: `${quant}.gguf`,
    parts: 1,
    size_bytes: 5_000_000_000,
    sha256: null,
    loss: null,
    recommended: false,
    reason: null,
    grounds: null,
    installed: false,
    fit: verdict(),
    ...parts,
  };
}

export function catalogModel(name: string, parts: Partial<CatalogModel> = {}): CatalogModel {
  return {
    id: name.toLowerCase(),
    name,
    about: 'Good at something.',
    aliases: [],
    capabilities: { inputs: ['text'], thinking: false, tools: false },
    context_train: 8192,
    speeds: [],
    scores: [],
    tier: null,
    default: false,
    kind: 'chat',
    maker: 'Example Labs',
    languages: null,
    repository: `o/${name}-GGUF`,
    licence: 'Apache-2.0',
    quants: [offered(`o/${name}-GGUF:Q4_K_M`, { recommended: true })],
    projector: null,
    ...parts,
  };
}

export function download(id: string, parts: Partial<DownloadStatus> = {}): DownloadStatus {
  return {
    id,
    reference: `o/${id}-GGUF:Q4_K_M`,
    file: `${id}-Q4_K_M.gguf`,
    files: [{ name: `${id}-Q4_K_M.gguf`, size_bytes: 4_000_000_000 }],
    state: 'downloading',
    priority: 'normal',
    received_bytes: 1_000_000_000,
    total_bytes: 4_000_000_000,
    bytes_per_second: 50_000_000,
    eta_seconds: 60,
    reason: null,
    warnings: [],
    ...parts,
  };
}

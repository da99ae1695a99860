import { decimal } from '../../lib/format';
import { translated } from '../../lib/language';
import type { CatalogModel, LibraryModel, OfferedFile } from '../../platform/openapi';
import { listModalities, stem } from './labels';

/** Returns the catalog's entry of which an installed model is a quant, listed there or not. */
export function entryOf(model: LibraryModel, catalog: CatalogModel[]): CatalogModel | undefined {
  const base = baseName(model.id);
  return catalog.find(({ quants }) =>
    quants.some((file) => isFile(model, file) || baseName(stem(file.file)) === base),
  );
}

/** Returns a file's name without its quant and part, in one spelling. */
function baseName(name: string): string {
  return name
    .replace(/-\d{5}-of-\d{5}$/, '')
    .replace(/[-._](UD-)?(I?Q\d\w*|B?F16|F32|MXFP4\w*)$/i, '')
    .toLowerCase();
}

/** Returns whether an installed model is this file of the hub. */
export function isFile({ id, reference }: LibraryModel, file: OfferedFile): boolean {
  return reference === file.reference || stem(file.file) === id;
}

/** Returns a model's name for people, without its quant unless another quant of it is installed too. */
export function nameOf(model: LibraryModel, models: LibraryModel[], catalog: CatalogModel[]): string {
  const entry = entryOf(model, catalog);
  if (!entry) return model.id;
  return models.some((other) => other.path !== model.path && entryOf(other, catalog) === entry)
    ? `${entry.name} ${model.account?.quant ?? model.id}`
    : entry.name;
}

/** Returns whether a chat can be held with it: embedders, rerankers and models without a chat template cannot. */
export function canChat({ account }: LibraryModel): boolean {
  return account === null || (account.kind === 'chat' && account.chat_template);
}

/** Returns in a sentence what an installed model is good for, from its file where the catalog does not say; '' if nothing is known. */
export function purposeOf(model: LibraryModel, entry?: CatalogModel): string {
  if (entry) return translated(entry.about);
  const { account, input_modalities } = model;
  if (!account) return '';
  if (account.kind === 'embedding') return 'Embeddings for search in documents.';
  if (account.kind === 'reranking') return 'Sorts search results by how well they match.';
  if (!account.chat_template) return 'Only continues text. The file has no chat template.';
  const media = input_modalities.filter((modality) => modality !== 'text');
  const chat = media.length > 0 ? `Chat about text, ${listModalities(media)}` : 'Chat';
  const { thinking, tools } = account;
  if (thinking && tools) return `${chat}, with thinking and tools.`;
  if (thinking) return `${chat}, with thinking.`;
  return tools ? `${chat}, with tools.` : `${chat}.`;
}

/** Returns quants from small to large. */
export function bySize(files: OfferedFile[]): OfferedFile[] {
  return [...files].sort((a, b) => (a.size_bytes ?? Infinity) - (b.size_bytes ?? Infinity));
}

/** Formats a number of parameters as model cards do, such as 8B and 135M. */
export function parameterLabel(parameters: number): string {
  const [value, unit] = parameters >= 999.5e6 ? [parameters / 1e9, 'B'] : [parameters / 1e6, 'M'];
  return `${value < 9.95 ? decimal(value, 0, 1) : decimal(value, 0)}${unit}`;
}

/** The address of a model's page. `id` is an installed model's or a catalog entry's. */
export function pageOf(id: string): string {
  return `#models/${encodeURIComponent(id)}`;
}

/** Returns the repository of a reference such as `owner/repo:Q4_K_M` or `owner/repo/file.gguf`; `null` for a URL. */
export function repositoryOf(reference: string): string | null {
  return reference.match(/^([\w.-]+\/[\w.-]+)(?:[:/@]|$)/)?.[1] ?? null;
}

import { fileSize } from '../../lib/format';
import type { LibraryModel } from '../../platform/api';

/** What `GET /tierbar/v1/models` tells. */
export interface ModelList {
  models_dir: string;
  models: LibraryModel[];
}

/** The file that a configured `model` means: an id, a file name in the models folder, or a path. */
export function findModel<M extends { id: string; path: string }>(
  models: M[],
  configured: string,
): M | undefined {
  if (configured === '') return undefined;
  return models.find(
    (model) => model.id === configured || model.path === configured || model.path.endsWith(`/${configured}`),
  );
}

/** A line for a list to choose from. */
export function modelLabel(model: LibraryModel): string {
  if (model.error) return `${model.id} (cannot be used)`;
  const facts = [fileSize(model.size_bytes), model.account?.quant].filter(Boolean);
  return `${model.id} (${facts.join(', ')})`;
}

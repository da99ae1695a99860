import { fileSize } from '../../lib/format';
import type { LibraryModel, Listed } from '../../platform/openapi';

/** The answer of `GET /tierbar/v1/models`. */
export type ModelList = Listed;

/** Finds the model that a configured `model` names: an id, a file name in the models folder, or a path. */
export function findModel<M extends { id: string; path: string }>(
  models: M[],
  configured: string,
): M | undefined {
  if (configured === '') return undefined;
  return models.find(
    (model) => model.id === configured || model.path === configured || model.path.endsWith(`/${configured}`),
  );
}

/** Returns the text of an option of a list of models. */
export function modelLabel(model: LibraryModel): string {
  if (model.error) return `${model.id} (unusable)`;
  const facts = [fileSize(model.size_bytes), model.account?.quant].filter(Boolean);
  return `${model.id} (${facts.join(', ')})`;
}

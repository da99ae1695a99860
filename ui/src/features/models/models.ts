import { fileSize } from '../../lib/format';
import type { ModelAccount } from '../../platform/api';

/** A `.gguf` file that the host found, as `GET /tierbar/v1/models` tells it. */
export interface ModelFile {
  id: string;
  path: string;
  size_bytes: number;
  account?: ModelAccount | null;
  /** Why the file cannot be used. */
  error?: string | null;
}

export interface ModelList {
  models_dir: string;
  models: ModelFile[];
}

/** The file that a configured `model` means: an id, a file name in the models folder, or a path. */
export function findModel(models: ModelFile[], configured: string): ModelFile | undefined {
  if (configured === '') return undefined;
  return models.find(
    (model) => model.id === configured || model.path === configured || model.path.endsWith(`/${configured}`),
  );
}

/** A line for a list to choose from. */
export function modelLabel(model: ModelFile): string {
  if (model.error) return `${model.id} (cannot be used)`;
  const facts = [fileSize(model.size_bytes), model.account?.quant].filter(Boolean);
  return `${model.id} (${facts.join(', ')})`;
}

import type { CatalogModel, OfferedFile } from '../../platform/openapi';

/** A first model to offer. */
export interface FirstModel {
  name: string;
  tier: string | null;
  file: OfferedFile;
  /** With the projector, where the catalog knows both. */
  total_bytes: number | null;
}

/** Returns the smallest default model that fits, and the smallest model of all. */
export function firstModels(catalog: CatalogModel[]): FirstModel[] {
  const offers = catalog
    .filter(({ kind }) => kind === 'chat')
    .flatMap(({ name, tier, quants, projector, default: isDefault }) => {
      const file = quants.find((file) => file.recommended && file.fit?.placement !== 'refused');
      if (!file) return [];
      const total_bytes = file.size_bytes === null ? null : file.size_bytes + (projector?.size_bytes ?? 0);
      return [{ name, tier, file, total_bytes, isDefault }];
    })
    .sort((a, b) => size(a.file) - size(b.file));
  const picks = new Set([offers.find(({ isDefault }) => isDefault), offers[0]]);
  return [...picks].flatMap((pick) => {
    if (!pick) return [];
    const { name, tier, file, total_bytes } = pick;
    return [{ name, tier, file, total_bytes }];
  });
}

function size(file: OfferedFile): number {
  return file.size_bytes ?? Number.POSITIVE_INFINITY;
}

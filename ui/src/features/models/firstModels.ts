import type { CatalogModel, OfferedFile } from '../../platform/openapi';

/** A first model to offer. */
export interface FirstModel {
  name: string;
  tier: string | null;
  file: OfferedFile;
}

/** Returns the smallest default model that fits, and the smallest model of all. */
export function firstModels(catalog: CatalogModel[]): FirstModel[] {
  const offers = catalog
    .filter(({ kind }) => kind === 'chat')
    .flatMap(({ name, tier, quants, default: isDefault }) => {
      const file = quants.find((file) => file.recommended && file.fit?.placement !== 'refused');
      return file ? [{ name, tier, file, isDefault }] : [];
    })
    .sort((a, b) => size(a.file) - size(b.file));
  const picks = new Set([offers.find(({ isDefault }) => isDefault), offers[0]]);
  return [...picks].flatMap((pick) => (pick ? [{ name: pick.name, tier: pick.tier, file: pick.file }] : []));
}

function size(file: OfferedFile): number {
  return file.size_bytes ?? Number.POSITIVE_INFINITY;
}

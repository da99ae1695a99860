import type { CatalogModel, OfferedFile } from '../../platform/api';

/** A model to begin with. */
export interface Pick {
  name: string;
  tier: string | null;
  file: OfferedFile;
}

/** The default that is the quickest to have and runs here, and the smallest of all, to try it at once. */
export function firstModels(catalog: CatalogModel[]): Pick[] {
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

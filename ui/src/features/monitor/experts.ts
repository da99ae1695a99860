import { count, fileSize, memory } from '../../lib/format';
import type { DiskTraffic, TierPaging, TierStatus } from '../../platform/openapi';

/** Whether a loaded tier reports its experts. With `mmap` the system pages the model, and knows of none. */
export function reportsExperts({ state, plan }: TierStatus): boolean {
  const loaded = state === 'ready' || state === 'busy';
  return loaded && plan !== null && ['cache', 'advise', 'stream'].includes(plan.placement);
}

export function isDense({ placement }: Pick<TierPaging, 'placement'>): boolean {
  return placement === 'stream';
}

/** Says what is in memory: experts are counted, and the layers of a dense model weighed. */
export function describeHeld(paging: TierPaging): string {
  if (isDense(paging)) return `${describeBytes(paging)} of layers in memory`;
  const letters = paging.layers.join('');
  const held = letters.length - letters.split('.').length + 1;
  return `${count(held)} of ${count(letters.length)} experts in memory`;
}

export function describeBytes({ held_bytes, all_bytes }: TierPaging): string {
  return `${memory(held_bytes)} of ${memory(all_bytes)}`;
}

export function describeDisk({ read_bytes_per_second, written_bytes_per_second }: DiskTraffic): string {
  return `${fileSize(read_bytes_per_second)}/s read, ${fileSize(written_bytes_per_second)}/s written`;
}

export function describeWear({ written_bytes_per_day: bytes }: DiskTraffic): string {
  const wear = 'Only writing wears a solid-state disk, and paging only reads.';
  return bytes === null ? wear : `All programs together write ${fileSize(bytes)} a day. ${wear}`;
}

/** An expert in the picture, in pixels. */
export interface Cell {
  x: number;
  y: number;
  width: number;
  height: number;
  /** How much it was used lately, from 0 to 1; `null` on disk. */
  heat: number | null;
}

/** The opacity of an expert that was not used lately. */
const FAINTEST = 0.35;

/** How strong an expert in memory is drawn. Most are lukewarm: the exponent sets the hot ones apart. */
export function opacity(heat: number): number {
  return FAINTEST + (1 - FAINTEST) * heat ** 1.5;
}

/** The height of a layer in the picture: as high as many layers allow. */
export function rowHeight(layers: number): number {
  return Math.min(Math.max(Math.floor(240 / Math.max(layers, 1)), 3), 10);
}

/** Below this width and height, gaps would take more than they show. */
const LEAST_FOR_GAPS = 4;

/**
 * Lays the experts out: a layer is a row, and an expert a column. `ratio` device pixels are a pixel of the page, and cells begin and
 * end at whole ones, so that they are sharp.
 */
export function cells(layers: string[], width: number, ratio: number): Cell[] {
  const row = rowHeight(layers.length);
  const line = Math.max(Math.round(ratio), 1);
  const gapBelow = row >= LEAST_FOR_GAPS ? line : 0;
  return layers.flatMap((layer, at) => {
    const column = (width * ratio) / layer.length;
    const gapBeside = column >= LEAST_FOR_GAPS * ratio ? line : 0;
    const y = Math.round(at * row * ratio);
    const height = Math.round((at + 1) * row * ratio) - y - gapBelow;
    return Array.from(layer, (letter, expert) => {
      const x = Math.round(expert * column);
      const end = Math.round((expert + 1) * column);
      const heat = letter === '.' ? null : Number(letter) / 9;
      return { x, y, width: Math.max(end - x - gapBeside, 1), height, heat };
    });
  });
}

import type { FolderRoom, TierPlan } from '../../platform/openapi';

/** What goes to one disk, in bytes. */
export interface Disk {
  room: FolderRoom;
  bytes: number;
  lacks: boolean;
}

/** What the downloads of these tiers put on each disk, in their order. `usual` is the models folder. */
export function disksOf(
  tiers: TierPlan[],
  usual: FolderRoom | null,
  placed: Record<string, FolderRoom | undefined>,
): Disk[] {
  const disks = new Map<string, { room: FolderRoom; bytes: number }>();
  for (const { tier, download_bytes } of tiers) {
    const room = placed[tier] ?? usual;
    if (room === null || download_bytes === 0) continue;
    const disk = disks.get(room.disk);
    if (disk) disk.bytes += download_bytes;
    else disks.set(room.disk, { room, bytes: download_bytes });
  }
  return [...disks.values()].map((disk) => ({ ...disk, lacks: disk.bytes > disk.room.room_bytes }));
}

import { fileName, saveFile } from '../../lib/saveFile';
import type { Platform } from '../../platform';
import type { ChatSummary } from '../../platform/openapi';
import type { Chats } from './chats.svelte';

/** Exports a chat into the folder for downloads. */
export async function saveChat(
  chats: Chats,
  platform: Platform,
  { id, title }: Pick<ChatSummary, 'id' | 'title'>,
  format: 'markdown' | 'json',
): Promise<void> {
  const file = await chats.export(id, format);
  if (!file) return;
  const name = fileName(title, format === 'json' ? 'json' : 'md');
  saveFile(file, name);
  if (platform.savesQuietly) chats.note({ text: `Saved “${name}” in Downloads.` });
}

import type { App } from '../../lib/app';
import { asApiError } from '../../lib/http';
import type { ChatSummary } from '../../platform/openapi';
import type { Chats } from '../chat/chats.svelte';
import { saveChat } from '../chat/saveChat';
import { SECTIONS } from '../settings/sections';
import { AUTO, displayName, holdsModel } from '../tiers/tiers';
import type { Entry } from './match';

/** What the page around the palette does. */
export interface Commands {
  newChat: () => void;
  open: (id: string) => void;
  search: () => void;
  find: () => void;
  importChats: () => void;
  toggleSidebar: () => void;
}

/** The commands, tiers, settings and chats, as they are now. */
export function paletteEntries(app: App, chats: Chats, commands: Commands): Entry[] {
  const { api, feed, platform, chains } = app;
  const key = commandKey();
  const attempt = async (call: () => Promise<unknown>) => {
    try {
      await call();
    } catch (cause) {
      chats.problem = asApiError(cause);
    }
  };
  const { current } = chats;
  const entries: Entry[] = [];
  const add = (
    group: string,
    id: string,
    label: string,
    run: () => void,
    more: { keys?: string; words?: string } = {},
  ) => entries.push({ group, id: `${group} ${id}`, label, run, ...more });

  const command = add.bind(null, 'Commands');
  // A browser keeps this key to itself.
  const inApp = platform.closePopover !== undefined;
  command('new', 'New Chat', commands.newChat, inApp ? { keys: `${key}N` } : {});
  command('search', 'Search Chats', commands.search, { keys: shiftKey('F'), words: 'find' });
  if (current.turns.length > 0)
    command('find', 'Find in This Chat', commands.find, { keys: `${key}F`, words: 'search' });
  if (current.busy) command('stop', 'Stop Answer', () => current.stop(), { keys: `${key}.` });
  command('sidebar', 'Show or Hide Chats', commands.toggleSidebar, { words: 'sidebar' });
  const chat = chats.list.find(({ id }) => id === current.id);
  if (chat) {
    command(
      'pin',
      chat.pinned ? 'Unpin This Chat' : 'Pin This Chat',
      () => void chats.pin(chat.id, !chat.pinned),
    );
    command('export', 'Export This Chat as Markdown', () => void saveChat(chats, platform, chat, 'markdown'));
    command('delete', 'Delete This Chat', () => void chats.remove(chat.id));
  }
  if (chats.done?.deleted) command('undo', 'Undo Delete', () => void chats.undo(), { keys: `${key}Z` });
  command('import', 'Import Chats…', commands.importChats, { words: 'ChatGPT Open WebUI LM Studio' });
  const status = feed.status;
  if (status?.guard.stance === 'paused')
    command('resume', 'Resume', () => void attempt(() => api.post('/tierbar/v1/resume')), { words: 'pause' });
  else if (status)
    command('pause', 'Pause', () => void attempt(() => api.post('/tierbar/v1/pause', { body: {} })), {
      words: 'unload all models',
    });

  const tiers = (status?.tiers ?? []).filter(({ kind }) => kind === 'chat');
  const choices = [
    { id: AUTO, about: '' },
    ...tiers.map(({ id, model }) => ({ id, about: model ?? '' })),
    ...(chains.list ?? []).map(({ name }) => ({ id: name, about: '' })),
  ];
  for (const { id, about } of choices)
    if (id !== current.model)
      add('Tiers', `use ${id}`, `Use ${displayName(id)} for This Chat`, () => void current.choose(id), {
        words: `use ${id} ${about}`,
      });
  for (const { id, state, engine, model } of status?.tiers ?? []) {
    if (engine === 'endpoint') continue;
    const path = { id };
    if (holdsModel(state))
      add(
        'Tiers',
        `unload ${id}`,
        `Unload ${displayName(id)}`,
        () => void attempt(() => api.post('/tierbar/v1/tiers/{id}/stop', { path, body: { force: false } })),
        { words: `unload ${id}` },
      );
    else if (state === 'stopped' && model !== null)
      add(
        'Tiers',
        `load ${id}`,
        `Load ${displayName(id)}`,
        () => void attempt(() => api.post('/tierbar/v1/tiers/{id}/start', { path })),
        { words: `load ${id}` },
      );
  }

  add('Settings', 'all', 'Settings', () => void platform.openSettings(), { keys: `${key},` });
  for (const { id, label, words } of SECTIONS)
    add('Settings', id, `Settings: ${label}`, () => void platform.openSettings(id), { words });

  entries.push(...chats.list.map((chat) => chatEntry(chat, commands)));
  return entries;
}

/** The chats that the host finds by these words, if the list does not have all chats. */
export async function moreChats(chats: Chats, words: string, commands: Commands): Promise<Entry[]> {
  if (!chats.hasMore) return [];
  const found = await chats.find(words);
  return found.map((chat) => chatEntry(chat, commands));
}

function chatEntry({ id, title }: ChatSummary, { open }: Commands): Entry {
  return { group: 'Chats', id: `Chats ${id}`, label: title || 'New Chat', run: () => open(id) };
}

/** A shortcut with Shift. */
function shiftKey(letter: string): string {
  return commandKey() === '⌘' ? `⇧⌘${letter}` : `Ctrl+Shift+${letter}`;
}

/** What a shortcut is written with here: ⌘ on a Mac, Ctrl+ elsewhere. */
export function commandKey(): string {
  return /Mac|iPhone|iPad/.test(navigator.platform) ? '⌘' : 'Ctrl+';
}

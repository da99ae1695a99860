import type { Platform } from '../types';

/** Brings the tab of that name to the front, or opens it: an answer that streams in the other tab goes on. */
async function show(page: string, tab: string) {
  window.open(page, tab)?.focus();
}

export const web: Platform = {
  connection: async () => ({ url: '' }),
  openSettings: (section) => show(section ? `settings.html#${section}` : 'settings.html', 'tierbar-settings'),
  openChat: () => show('./', 'tierbar-chat'),
};

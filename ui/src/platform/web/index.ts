import type { Platform } from '../types';

/** Brings the tab of that name to the front, or opens it, so that an answer streaming in that tab continues. */
async function show(page: string, tab: string) {
  window.open(page, tab)?.focus();
}

export const web: Platform = {
  connection: async () => ({ url: '' }),
  openSettings: (section) => show(section ? `settings.html#${section}` : 'settings.html', 'tierbar-settings'),
  openChat: (id) => show(id === undefined ? './' : `./#chat=${id}`, 'tierbar-chat'),
};

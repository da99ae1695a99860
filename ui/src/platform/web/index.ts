import type { Notifications, Platform } from '../types';

/** Brings the tab of that name to the front, or opens it, so that an answer streaming in that tab continues. */
async function show(page: string, tab: string) {
  window.open(page, tab)?.focus();
}

/** Absent from an address that is not secure, and from some browsers. */
const notifications: Notifications | undefined =
  'Notification' in window
    ? {
        permission: async () => Notification.permission,
        ask: () => Notification.requestPermission(),
        show: (title, body, tag) => {
          if (Notification.permission === 'granted') new Notification(title, { body, tag });
        },
      }
    : undefined;

export const web: Platform = {
  notifications,
  connection: async () => ({ url: '' }),
  openSettings: (section) => show(section ? `settings.html#${section}` : 'settings.html', 'tierbar-settings'),
  openChat: (id) => show(id === undefined ? './' : `./#chat=${id}`, 'tierbar-chats'),
};

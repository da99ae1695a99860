import { invoke } from '@tauri-apps/api/core';
import { getCurrentWebview } from '@tauri-apps/api/webview';
import type { CommandLine, Connection, Platform } from '../types';

export const tauri: Platform = {
  connection: () => invoke<Connection>('connection'),
  openSettings: (section) => invoke('open_settings', section && { section }),
  openChat: (id) => invoke('open_chat', id === undefined ? {} : { chat: id }),
  closePopover: () => invoke('close_popover'),
  loginItem: {
    get: () => invoke<boolean>('login_item'),
    set: (on) => invoke<boolean>('set_login_item', { on }),
  },
  checkShortcut: (keys) => invoke('check_shortcut', { keys }),
  commandLine: {
    get: () => invoke<CommandLine>('command_line'),
    set: (installed) => invoke<CommandLine>('set_command_line', { installed }),
  },
  savesQuietly: true,
  notifications: {
    permission: () => invoke<NotificationPermission>('notification_permission', { ask: false }),
    ask: () => invoke<NotificationPermission>('notification_permission', { ask: true }),
    // The menu-bar app shows them, with or without a window.
    show: () => {},
  },
  revealModelsFolder: () => invoke('reveal_models_folder'),
  openDocument: (passage) => invoke('open_document', { passage }),
  onFilesDropped: (call) =>
    getCurrentWebview().onDragDropEvent(({ payload }) => {
      if (payload.type === 'drop') call({ type: 'drop', paths: payload.paths });
      else call({ type: payload.type === 'leave' ? 'leave' : 'over' });
    }),
  dropped: {
    folders: () => invoke<string[]>('dropped_folders'),
    read: (path) => invoke<ArrayBuffer>('read_dropped', { path }),
  },
};

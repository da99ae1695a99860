import { clearMocks, mockIPC } from '@tauri-apps/api/mocks';
import { afterEach, describe, expect, it } from 'vitest';
import { detectPlatform } from '..';

afterEach(() => {
  clearMocks();
  Reflect.deleteProperty(window, '__TAURI_INTERNALS__');
});

describe('the platform', () => {
  it('has no login item and no folder to show in a browser', async () => {
    const platform = await detectPlatform();
    expect(await platform.connection()).toEqual({ url: '' });
    expect(platform.loginItem).toBeUndefined();
    expect(platform.commandLine).toBeUndefined();
    expect(platform.checkShortcut).toBeUndefined();
    expect(platform.revealModelsFolder).toBeUndefined();
    expect(platform.openDocument).toBeUndefined();
  });

  it('calls the shell’s commands in the app', async () => {
    const calls: unknown[] = [];
    mockIPC((command, args) => {
      calls.push([command, args]);
      return {
        connection: { url: 'http://127.0.0.1:1', token: 't' },
        login_item: false,
        set_login_item: true,
        notification_permission: 'denied',
      }[command];
    });
    const platform = await detectPlatform();
    expect(await platform.connection()).toEqual({ url: 'http://127.0.0.1:1', token: 't' });
    expect(await platform.loginItem?.get()).toBe(false);
    expect(await platform.loginItem?.set(true)).toBe(true);
    expect(await platform.notifications?.permission()).toBe('denied');
    expect(await platform.notifications?.ask()).toBe('denied');
    await platform.checkShortcut?.('Alt+Space');
    await platform.commandLine?.get();
    await platform.commandLine?.set(true);
    await platform.openSettings();
    await platform.openSettings('models');
    await platform.openChat();
    await platform.openChat('c1');
    await platform.closePopover?.();
    await platform.revealModelsFolder?.();
    await platform.openDocument?.(7);
    await platform.dropped?.folders();
    await platform.dropped?.read('/d/a');
    expect(calls).toEqual([
      ['connection', {}],
      ['login_item', {}],
      ['set_login_item', { on: true }],
      ['notification_permission', { ask: false }],
      ['notification_permission', { ask: true }],
      ['check_shortcut', { keys: 'Alt+Space' }],
      ['command_line', {}],
      ['set_command_line', { installed: true }],
      ['open_settings', {}],
      ['open_settings', { section: 'models' }],
      ['open_chat', {}],
      ['open_chat', { chat: 'c1' }],
      ['close_popover', {}],
      ['reveal_models_folder', {}],
      ['open_document', { passage: 7 }],
      ['dropped_folders', {}],
      ['read_dropped', { path: '/d/a' }],
    ]);
  });
});

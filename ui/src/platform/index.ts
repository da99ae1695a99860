import type { Platform } from './types';

export type {
  CommandLine,
  CommandLineTool,
  Connection,
  FilesDragged,
  LoginItem,
  Notifications,
  Platform,
  SettingsSection,
} from './types';

export async function detectPlatform(): Promise<Platform> {
  return '__TAURI_INTERNALS__' in window ? (await import('./tauri')).tauri : (await import('./web')).web;
}

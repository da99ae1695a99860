import { expect, it } from 'vitest';
import { shortcutLabel, shortcutOf } from './shortcut';

const press = (key: string, code: string, held: object = {}) =>
  shortcutOf({ key, code, ctrlKey: false, altKey: false, shiftKey: false, metaKey: false, ...held });

it('pressed keys are written as the configuration does', () => {
  expect(press('Alt', 'AltLeft', { altKey: true })).toBeNull();
  expect(press(' ', 'Space', { altKey: true })).toBe('Alt+Space');
  expect(press('˚', 'KeyK', { altKey: true, metaKey: true, ctrlKey: true })).toBe('Ctrl+Alt+Cmd+K');
  expect(press('!', 'Digit1', { shiftKey: true, ctrlKey: true })).toBe('Ctrl+Shift+1');
  expect(press('F5', 'F5')).toBe('F5');
});

it('a shortcut is shown as the system writes it', () => {
  expect(shortcutLabel('Alt+Space', false)).toBe('Alt+Space');
  expect(shortcutLabel('Ctrl+Cmd+PageUp', false)).toBe('Ctrl+Super+Page Up');
  expect(shortcutLabel('Ctrl+Alt+Shift+Cmd+ArrowUp', true)).toBe('⌃⌥⇧⌘↑');
});

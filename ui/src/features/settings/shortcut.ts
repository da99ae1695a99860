/** The modifiers in the order of the configuration: its name, the property of a keyboard event, and the sign that a Mac shows. */
const MODIFIERS = [
  ['Ctrl', 'ctrlKey', '⌃'],
  ['Alt', 'altKey', '⌥'],
  ['Shift', 'shiftKey', '⇧'],
  ['Cmd', 'metaKey', '⌘'],
] as const;

const ARROWS: Record<string, string> = { ArrowUp: '↑', ArrowDown: '↓', ArrowLeft: '←', ArrowRight: '→' };

type Press = Pick<KeyboardEvent, 'code' | 'key' | (typeof MODIFIERS)[number][1]>;

/** Returns the pressed keys as the configuration writes them; `null` while only modifiers are held. */
export function shortcutOf(press: Press): string | null {
  if (['Control', 'Alt', 'AltGraph', 'Shift', 'Meta', 'OS'].includes(press.key)) return null;
  const key = press.code.replace(/^(Key|Digit)(?=.$)/, '');
  const held = MODIFIERS.filter(([, property]) => press[property]).map(([name]) => name);
  return [...held, key].join('+');
}

/** Writes a shortcut of the configuration as the system does: `⌥Space` on a Mac, elsewhere `Alt+Space`. */
export function shortcutLabel(keys: string, onMac: boolean): string {
  const words = keys.split('+').map((word) => {
    const modifier = MODIFIERS.find(([name]) => name === word);
    if (modifier) return onMac ? modifier[2] : word === 'Cmd' ? 'Super' : word;
    return ARROWS[word] ?? word.replace(/([a-z])([A-Z])/g, '$1 $2');
  });
  return words.join(onMac ? '' : '+');
}

import type { McpServerConfig } from '../../platform/openapi';

/** Splits a command line into its words as a shell does, with single and double quotes. `null` if a quote is not closed. */
export function splitCommand(line: string): string[] | null {
  const words: string[] = [];
  let word: string | null = null;
  let quote = '';
  for (const letter of line) {
    if (quote !== '') {
      if (letter === quote) quote = '';
      else word += letter;
    } else if (letter === '"' || letter === "'") {
      quote = letter;
      word ??= '';
    } else if (/\s/.test(letter)) {
      if (word !== null) words.push(word);
      word = null;
    } else word = (word ?? '') + letter;
  }
  if (quote !== '') return null;
  if (word !== null) words.push(word);
  return words;
}

/** The program with its arguments as one would type it, or the address. */
export function describePlace({ command, url }: McpServerConfig): string {
  if (url !== '') return url;
  return command.map((word) => (/^[^\s"']+$/.test(word) ? word : JSON.stringify(word))).join(' ');
}

/** What a program may use, in a sentence; `null` for an address. */
export function describeAccess({ url, folder, network }: McpServerConfig): string | null {
  if (url !== '') return null;
  if (folder === '')
    return network
      ? 'Can use the network, but none of your files.'
      : 'Can use neither the network nor files of yours.';
  return network
    ? `Can use the network, and read and change files in ${folder}.`
    : `Can read and change files in ${folder}, without the network.`;
}

/** The name that the key of a server is stored under. That of an address belongs to its host. */
export function secretOf(name: string, { url }: Pick<McpServerConfig, 'url'>): string {
  if (url === '') return `mcp-${name}`;
  const [, scheme = '', server = ''] = /^(\w+):\/\/([^/?#]*)/.exec(url) ?? [];
  const host = server.toLowerCase();
  if (/[.:]/.test(host)) return host;
  return scheme === 'https' ? `${host}:443` : `${host}:80`;
}

/** The settings of a new server without those that are so by themselves, which its file need not have. */
export function whatIsSet(server: McpServerConfig): Partial<McpServerConfig> {
  const set = Object.entries(server).filter(([name, value]) =>
    name === 'enabled'
      ? value === false
      : Array.isArray(value)
        ? value.length > 0
        : value !== '' && value !== false,
  );
  return Object.fromEntries(set);
}

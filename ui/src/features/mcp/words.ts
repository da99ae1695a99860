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
  return url !== '' ? url : joinWords(command);
}

/** Words as [`splitCommand`] reads them. */
export function joinWords(words: string[]): string {
  return words.map((word) => (/^[^\s"']+$/.test(word) ? word : JSON.stringify(word))).join(' ');
}

/** What a program may use, in a sentence; `null` for an address. */
export function describeAccess({ url, folder, read, network }: McpServerConfig): string | null {
  if (url !== '') return null;
  if (read.length > 0) {
    const others = read.join(', ');
    if (folder === '')
      return network
        ? `Can use the network, and read files in ${others}.`
        : `Can read files in ${others}, without the network.`;
    return network
      ? `Can use the network, read and change files in ${folder}, and read files in ${others}.`
      : `Can read and change files in ${folder}, and read files in ${others}, without the network.`;
  }
  if (folder === '')
    return network
      ? 'Can use the network, but none of your files.'
      : 'Can use neither the network nor your files.';
  return network
    ? `Can use the network, and read and change files in ${folder}.`
    : `Can read and change files in ${folder}, without the network.`;
}

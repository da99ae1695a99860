/** A command that is typed into the composer. */
export interface Command {
  name: string;
  /** What may follow it. */
  argument?: string;
  /** Whether it does nothing without that. */
  needs?: boolean;
  help: string;
}

export const COMMANDS: Command[] = [
  { name: 'new', help: 'Start a new chat' },
  { name: 'model', argument: 'NAME', needs: true, help: 'Choose the tier or chain that answers' },
  { name: 'instructions', argument: 'TEXT', help: 'Set instructions for each answer' },
  { name: 'agent', argument: 'FOLDER', help: 'Let the model act in a folder, and ask first' },
  { name: 'retry', help: 'Answer the last message again' },
  { name: 'continue', help: 'Continue the last answer' },
  { name: 'export', help: 'Save this chat as Markdown' },
  { name: 'clear', help: 'Start over in this chat; its messages are kept' },
  { name: 'good', argument: 'WHY', help: 'Grade the last answer as good' },
  { name: 'bad', argument: 'WHY', help: 'Grade the last answer as bad' },
  { name: 'ungrade', help: 'Remove the grade of the last answer' },
  { name: 'improve', help: 'Show how answers were graded' },
  { name: 'cost', help: 'Show the costs of requests' },
  { name: 'help', help: 'Show the commands' },
];

/** A line of the list above the composer. */
export interface Suggestion {
  /** What the draft becomes. */
  draft: string;
  label: string;
  help: string;
  /** Whether choosing it runs the command. */
  runs: boolean;
}

/** What could complete the draft. `models`: the names that `/model` takes. */
export function suggest(draft: string, models: string[]): Suggestion[] {
  const named = /^\/model +(\S*)$/.exec(draft);
  if (named) {
    const begun = named[1] ?? '';
    const matching = models.filter((name) => name.startsWith(begun));
    return matching.map((name) => ({ draft: `/model ${name}`, label: name, help: '', runs: true }));
  }
  const begun = /^\/([a-z]*)$/.exec(draft)?.[1];
  if (begun === undefined) return [];
  return COMMANDS.filter(({ name }) => name.startsWith(begun)).map(({ name, argument, needs, help }) => ({
    draft: needs ? `/${name} ` : `/${name}`,
    label: argument ? `/${name} ${argument}` : `/${name}`,
    help,
    runs: !needs,
  }));
}

/** What a draft asks for. */
export type Input =
  | { kind: 'message'; text: string }
  | { kind: 'command'; name: string; argument: string }
  /** A command that does not exist, or has words behind it that it does not take. */
  | { kind: 'refused'; why: string };

/** Reads a draft. A path such as `/usr/bin` is a message; a second slash at the beginning makes anything one. */
export function readInput(draft: string): Input {
  if (draft.startsWith('//')) return { kind: 'message', text: draft.slice(1) };
  const typed = /^\/([A-Za-z]+)(?:\s+([\s\S]*))?$/.exec(draft.trimEnd());
  const name = typed?.[1]?.toLowerCase();
  if (name === undefined) return { kind: 'message', text: draft };
  const known = COMMANDS.find((command) => command.name === name);
  if (known === undefined) {
    const why = `There is no command /${name}. Type /help for the commands, or // to begin a message with a slash.`;
    return { kind: 'refused', why };
  }
  const argument = typed?.[2]?.trim() ?? '';
  if (argument !== '' && known.argument === undefined) {
    const why = `The command /${name} takes no words. Remove what follows it, or type // to begin a message with a slash.`;
    return { kind: 'refused', why };
  }
  return { kind: 'command', name, argument };
}

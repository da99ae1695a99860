/** Characters that change the direction of what follows them: in code they hide what a program does. */
export const DIRECTION = /[\u202a-\u202e\u2066-\u2069]/g;
/** Those that reverse Latin letters too: in text they disguise a file's name or an address. */
export const OVERRIDE = /[\u202a-\u202e]/g;

/** A piece of a text: one of these characters with its name, or what stands between them, without one. */
export interface DirectionPiece {
  text: string;
  name: string | null;
}

/** Returns a character's name in Unicode's form, such as `U+202E`. */
export function codePointName(character: string): string {
  return `U+${character.charCodeAt(0).toString(16).toUpperCase()}`;
}

/** Splits a text at the characters of a pattern. */
export function splitDirections(text: string, pattern: RegExp = OVERRIDE): DirectionPiece[] {
  const pieces: DirectionPiece[] = [];
  let done = 0;
  for (const { 0: character, index } of text.matchAll(pattern)) {
    if (index > done) pieces.push({ text: text.slice(done, index), name: null });
    pieces.push({ text: character, name: codePointName(character) });
    done = index + character.length;
  }
  if (done < text.length) pieces.push({ text: text.slice(done), name: null });
  return pieces;
}

/** Replaces overrides by their names, for where no element can hold them, such as a tooltip. */
export function nameOverrides(text: string): string {
  return text.replace(OVERRIDE, (character) => `[${codePointName(character)}]`);
}

import { count, fileSize } from '../../lib/format';
import type { FileText, Modality, NewPart, Part, TierStatus } from '../../platform/openapi';
import { AUTO, displayName } from '../tiers/tiers';

/** A file of a question, on its way or stored. */
export interface QuestionFile {
  kind: 'image' | 'audio' | 'file';
  name: string;
  bytes: number;
  /** About how many tokens a text has. */
  tokens: number | null;
  /** An image as a `data:` URL, until it is sent. */
  preview: string | null;
  /** What of a document is missing or may be wrong, in sentences. */
  notice: string | null;
  /** As a turn sends it. */
  part: NewPart;
}

const MIB = 2 ** 20;
/** What the host takes of each kind, and in one question. */
const MOST_BYTES = { image: 16 * MIB, audio: 16 * MIB, mp3: 4 * MIB, file: 2 * MIB, document: 30 * MIB };
const MOST_TOGETHER = 20 * MIB;
export const MOST_FILES = 20;
/** Ends why a file is not sent, where Models has what to do. */
export const ADD_IN_MODELS = 'Add Images and Sound to a model in Models.';
/** The part of a context that the text of files may fill: the rest is for the chat and the answer. */
const CONTEXT_SHARE = 0.5;
/** Bytes of text to a token, as English and code have them. */
const BYTES_PER_TOKEN = 4;

const IMAGES = /^image\/(png|jpeg|gif|webp|bmp)$/;
const SOUNDS = /^audio\/(wav|x-wav|wave|vnd\.wave|mpeg|mp3)$/;

const TYPES: Record<string, string> = {
  png: 'image/png',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  gif: 'image/gif',
  webp: 'image/webp',
  bmp: 'image/bmp',
  wav: 'audio/wav',
  mp3: 'audio/mpeg',
  pdf: 'application/pdf',
};

const typeOf = (path: string) => TYPES[path.split('.').at(-1)?.toLowerCase() ?? ''] ?? '';

/** Whether it can only go with a question: it has no words to search. */
export function isMedium(path: string): boolean {
  return /^(image|audio)\//.test(typeOf(path));
}

/** Returns a file of this computer as a page has it. */
export function fileAt(path: string, data: ArrayBuffer): File {
  return new File([data], path.split('/').at(-1) ?? path, { type: typeOf(path) });
}

/**
 * Reads a file for a question. What cannot be sent throws a sentence that says why, if it can before it is read.
 * `textOf` returns the text of a file that is no image and no sound.
 */
export async function readFile(file: File, textOf: (file: File) => Promise<FileText>): Promise<QuestionFile> {
  const { name, size: bytes, type } = file;
  if (IMAGES.test(type)) {
    check(file, MOST_BYTES.image, 'An image');
    const preview = await dataUrl(file);
    const part: NewPart = { type: 'image', name, media_type: type, data: base64(preview) };
    return { kind: 'image', name, bytes, tokens: null, preview, notice: null, part };
  }
  if (SOUNDS.test(type)) {
    const mp3 = /mpeg|mp3/.test(type);
    check(file, mp3 ? MOST_BYTES.mp3 : MOST_BYTES.audio, mp3 ? 'An MP3 file' : 'A sound');
    const media_type = mp3 ? 'audio/mpeg' : 'audio/wav';
    const part: NewPart = { type: 'audio', name, media_type, data: base64(await dataUrl(file)) };
    return { kind: 'audio', name, bytes, tokens: null, preview: null, notice: null, part };
  }
  if (/^(image|audio|video)\//.test(type) && type !== 'image/svg+xml' && !/\.tsx?$/i.test(name))
    throw new Error(
      `${name} can’t be sent. Send PNG, JPEG, GIF, WebP or BMP images, WAV or MP3 sound, text, or documents.`,
    );
  check(file, MOST_BYTES.document, 'A file');
  const { text, notice } = await textOf(file);
  // Only the text is sent, so its size counts.
  const size = new TextEncoder().encode(text).length;
  if (size > MOST_BYTES.file)
    throw new Error(
      `${name} has ${fileSize(size)} of text. A file can have up to ${fileSize(MOST_BYTES.file)}.`,
    );
  const part: NewPart = { type: 'file', name, media_type: 'text/plain', text };
  return { kind: 'file', name, bytes: size, tokens: tokensOf(size), preview: null, notice, part };
}

function check({ name, size }: File, most: number, what: string): void {
  if (size > most)
    throw new Error(`${name} has ${fileSize(size)}. ${what} can have up to ${fileSize(most)}.`);
}

function dataUrl(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.onerror = () => reject(new Error(`${file.name} can’t be read.`));
    reader.readAsDataURL(file);
  });
}

function base64(url: string): string {
  return url.slice(url.indexOf(',') + 1);
}

function tokensOf(bytes: number): number {
  return Math.ceil(bytes / BYTES_PER_TOKEN);
}

/** A part of a stored message, if it is a file. */
export function storedFile(part: Part): QuestionFile | null {
  if (part.type !== 'image' && part.type !== 'audio' && part.type !== 'file') return null;
  const { name, bytes, sha256 } = part.file;
  const tokens = part.type === 'file' ? tokensOf(bytes) : null;
  return {
    kind: part.type,
    name,
    bytes,
    tokens,
    preview: null,
    notice: null,
    part: { type: 'stored', sha256 },
  };
}

/** Why these files cannot be sent to what answers a chat, in a sentence. */
export function whyNotSent(files: QuestionFile[], model: string, tiers: TierStatus[]): string | null {
  if (files.length > MOST_FILES) return `A message can have up to ${MOST_FILES} files.`;
  // Of a document, its text is sent.
  const together = files.reduce(
    (sum, { kind, bytes }) => sum + (kind === 'file' ? Math.min(bytes, MOST_BYTES.file) : bytes),
    0,
  );
  if (together > MOST_TOGETHER)
    return `The files have ${fileSize(together)}. A message can have up to ${fileSize(MOST_TOGETHER)}.`;
  const chat = tiers.filter(({ kind }) => kind === 'chat');
  const named = chat.filter(({ id }) => id === model);
  // A chain or a model by its id: its steps are not known here.
  if (named.length === 0 && model !== AUTO) return null;
  const able = named.length > 0 ? named : chat;
  return notTaken(files, able, chat) ?? tooLong(files, able);
}

function notTaken(files: QuestionFile[], able: TierStatus[], all: TierStatus[]): string | null {
  const kinds: [QuestionFile['kind'], Modality, of: (tier: string) => string, ofAll: string][] = [
    ['image', 'image', (tier) => `${tier} doesn’t accept images.`, 'No tier accepts images.'],
    ['audio', 'audio', (tier) => `${tier} doesn’t accept sound.`, 'No tier accepts sound.'],
  ];
  for (const [kind, modality, of, ofAll] of kinds) {
    if (!files.some((file) => file.kind === kind)) continue;
    // What other servers take is not known.
    const takes = ({ input_modalities: taken }: TierStatus) => taken.length === 0 || taken.includes(modality);
    if (able.length === 0 || able.some(takes)) continue;
    const other = all.find(takes);
    const [only] = able;
    const what = able.length === 1 && only ? of(displayName(only.id)) : ofAll;
    const hint = other ? `Choose ${displayName(other.id)}, which accepts them.` : ADD_IN_MODELS;
    return `${what} ${hint}`;
  }
  return null;
}

function tooLong(files: QuestionFile[], able: TierStatus[]): string | null {
  const tokens = files.reduce((sum, file) => sum + (file.tokens ?? 0), 0);
  const context = Math.max(0, ...able.map(({ context_tokens }) => context_tokens));
  if (context === 0 || tokens <= context * CONTEXT_SHARE) return null;
  return `The files have about ${count(tokens)} tokens. They can fill at most half of the context of ${count(context)} tokens.`;
}

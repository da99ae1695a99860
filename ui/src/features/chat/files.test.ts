import { describe, expect, it, vi } from 'vitest';
import { STATUS } from '../../testing/host';
import { type QuestionFile, readFile, storedFile, whyNotSent } from './files';

const textOf = vi.fn(async (file: File) => ({ text: `Text of ${file.name}`, notice: null as string | null }));

const file = (name: string, type: string, ...content: BlobPart[]) => new File(content, name, { type });
const why = (promise: Promise<QuestionFile>) =>
  promise.then(
    () => 'it was read',
    (error: Error) => error.message,
  );

describe('a file', () => {
  it('is read as text with its estimated tokens, or as an image with a preview', async () => {
    const text = await readFile(file('a.rs', '', 'fn main() {}'), textOf);
    expect(text).toMatchObject({ kind: 'file', bytes: 12, tokens: 3, preview: null, notice: null });
    expect(text.part).toEqual({ type: 'file', name: 'a.rs', media_type: 'text/plain', text: 'Text of a.rs' });
    const image = await readFile(file('a.png', 'image/png', new Uint8Array([1, 2, 3])), textOf);
    expect(image.part).toEqual({ type: 'image', name: 'a.png', media_type: 'image/png', data: 'AQID' });
    expect(image.preview).toBe('data:image/png;base64,AQID');
    const sound = await readFile(file('a.mp3', 'audio/mpeg', new Uint8Array([1])), textOf);
    expect(sound.part).toMatchObject({ type: 'audio', media_type: 'audio/mpeg' });
    expect(textOf).toHaveBeenCalledTimes(1);
    const notice = 'Page 2 is damaged.';
    textOf.mockResolvedValueOnce({ text: 'Page one', notice });
    const read = await readFile(file('a.pdf', 'application/pdf', new Uint8Array(5000)), textOf);
    expect(read).toMatchObject({
      bytes: 8,
      tokens: 2,
      notice,
      part: { type: 'file', name: 'a.pdf', text: 'Page one' },
    });
    expect(await readFile(file('a.ts', 'video/mp2t', 'let x;'), textOf)).toMatchObject({ kind: 'file' });
  });

  it('that cannot be sent is refused with the reason', async () => {
    textOf.mockRejectedValueOnce(new Error('a.pdf needs a password.'));
    expect(await why(readFile(file('a.pdf', ''), textOf))).toBe('a.pdf needs a password.');
    textOf.mockResolvedValueOnce({ text: 'ü'.repeat(2 ** 20 + 1), notice: null });
    expect(await why(readFile(file('a.pdf', ''), textOf))).toBe(
      'a.pdf has 2 MB of text. A file can have up to 2 MB.',
    );
    expect(await why(readFile(file('a.mp4', 'video/mp4'), textOf))).toContain('a.mp4 can’t be sent.');
  });

  it('of 2 GB is refused without reading it', async () => {
    const large = file('log.txt', 'text/plain');
    Object.defineProperty(large, 'size', { value: 2e9 });
    textOf.mockClear();
    expect(await why(readFile(large, textOf))).toBe('log.txt has 2 GB. A file can have up to 31 MB.');
    expect(textOf).not.toHaveBeenCalled();
  });

  it('of a stored message is sent again by its hash', () => {
    const stored = { sha256: 'ab', media_type: 'text/plain', name: 'a.txt', bytes: 8 };
    expect(storedFile({ type: 'file', file: stored })).toMatchObject({
      tokens: 2,
      part: { type: 'stored', sha256: 'ab' },
    });
    expect(storedFile({ type: 'text', text: 'a' })).toBeNull();
  });
});

describe('files', () => {
  const one = (kind: QuestionFile['kind'], tokens: number | null = null): QuestionFile => ({
    kind,
    name: 'a',
    bytes: 1,
    tokens,
    preview: null,
    notice: null,
    part: { type: 'stored', sha256: 'a' },
  });
  const [fast, primary] = STATUS.tiers;
  const seeing = { ...primary, input_modalities: ['text', 'image'] } as (typeof STATUS.tiers)[number];

  it('go only to a tier that takes them', () => {
    expect(whyNotSent([one('image')], 'fast', STATUS.tiers)).toBe(
      'Fast doesn’t accept images. Add Images and Sound to a model in Models.',
    );
    const tiers = [fast, seeing].filter((tier) => tier !== undefined);
    expect(whyNotSent([one('image')], 'fast', tiers)).toBe(
      'Fast doesn’t accept images. Choose Everyday, which accepts them.',
    );
    expect(whyNotSent([one('image')], 'primary', tiers)).toBeNull();
    expect(whyNotSent([one('image')], 'auto', tiers)).toBeNull();
    expect(whyNotSent([one('audio')], 'auto', tiers)).toContain('No tier accepts sound.');
    expect(whyNotSent([one('audio')], 'nightly', tiers)).toBeNull();
  });

  it('fill at most half of the context', () => {
    expect(whyNotSent([one('file', 2048)], 'fast', STATUS.tiers)).toBeNull();
    expect(whyNotSent([one('file', 2000), one('file', 100)], 'fast', STATUS.tiers)).toBe(
      'The files have about 2,100 tokens. They can fill at most half of the context of 4,096 tokens.',
    );
    expect(whyNotSent([one('file', 4096)], 'auto', STATUS.tiers)).toBeNull();
    expect(whyNotSent(Array(21).fill(one('file', 1)), 'auto', STATUS.tiers)).toContain('20 files');
  });
});

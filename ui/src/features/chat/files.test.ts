import { describe, expect, it, vi } from 'vitest';
import { STATUS } from '../../testing/host';
import { type QuestionFile, readFile, storedFile, whyNotSent } from './files';

const pdf = vi.hoisted(() => ({ textOfPdf: vi.fn() }));
vi.mock('./pdf', () => pdf);

const file = (name: string, type: string, ...content: BlobPart[]) => new File(content, name, { type });
const why = (promise: Promise<QuestionFile>) =>
  promise.then(
    () => 'it was read',
    (error: Error) => error.message,
  );

describe('a file', () => {
  it('is read as text with its estimated tokens, or as an image with a preview', async () => {
    const text = await readFile(file('a.rs', '', 'fn main() {}'));
    expect(text).toMatchObject({ kind: 'file', bytes: 12, tokens: 3, preview: null });
    expect(text.part).toEqual({ type: 'file', name: 'a.rs', media_type: 'text/plain', text: 'fn main() {}' });
    const image = await readFile(file('a.png', 'image/png', new Uint8Array([1, 2, 3])));
    expect(image.part).toEqual({ type: 'image', name: 'a.png', media_type: 'image/png', data: 'AQID' });
    expect(image.preview).toBe('data:image/png;base64,AQID');
    const sound = await readFile(file('a.mp3', 'audio/mpeg', new Uint8Array([1])));
    expect(sound.part).toMatchObject({ type: 'audio', media_type: 'audio/mpeg' });
    pdf.textOfPdf.mockResolvedValueOnce('Page one');
    const read = await readFile(file('a.pdf', 'application/pdf', new Uint8Array(5000)));
    expect(read).toMatchObject({
      bytes: 8,
      tokens: 2,
      part: { type: 'file', name: 'a.pdf', text: 'Page one' },
    });
    expect(await readFile(file('a.ts', 'video/mp2t', 'let x;'))).toMatchObject({ kind: 'file' });
  });

  it('that cannot be sent is refused with the reason', async () => {
    pdf.textOfPdf.mockRejectedValueOnce(Object.assign(new Error('no'), { name: 'PasswordException' }));
    expect(await why(readFile(file('a.pdf', 'application/pdf')))).toBe(
      'a.pdf needs a password. Save it without one.',
    );
    pdf.textOfPdf.mockRejectedValueOnce(new Error('broken'));
    expect(await why(readFile(file('a.pdf', '')))).toBe('a.pdf can’t be read as a PDF.');
    pdf.textOfPdf.mockResolvedValueOnce('');
    expect(await why(readFile(file('a.pdf', '')))).toContain('a.pdf has no text.');
    expect(await why(readFile(file('a.mp4', 'video/mp4')))).toContain('a.mp4 can’t be sent.');
    const binary = file('a.bin', '', new Uint8Array([0xff, 0xfe, 0]));
    expect(await why(readFile(binary))).toBe('a.bin isn’t text, an image, or sound that Tierbar can read.');
  });

  it('of 2 GB is refused without reading it', async () => {
    const large = file('log.txt', 'text/plain');
    Object.defineProperty(large, 'size', { value: 2e9 });
    const read = vi.spyOn(large, 'arrayBuffer');
    expect(await why(readFile(large))).toBe('log.txt has 2 GB. A text file can have up to 2 MB.');
    expect(read).not.toHaveBeenCalled();
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

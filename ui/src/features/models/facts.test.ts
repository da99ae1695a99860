import { describe, expect, it } from 'vitest';
import { account, catalogModel, localModel, offered } from '../../testing/models';
import { bySize, canChat, entryOf, nameOf, pageOf, parameterLabel, purposeOf } from './facts';

const entry = catalogModel('Gemma 4 E2B', {
  quants: [offered('o/g:UD-Q4_K_XL', { file: 'sub/gemma-4-E2B-it-UD-Q4_K_XL.gguf' })],
});
const catalog = [catalogModel('Other'), entry];

describe('an installed model', () => {
  it.each([
    'gemma-4-E2B-it-UD-Q4_K_XL',
    'gemma-4-e2b-it-Q8_0',
    'gemma-4-E2B-it.IQ2_M',
    'gemma-4-E2B-it-BF16-00001-of-00002',
  ])('%s belongs to the entry of its model', (id) => {
    expect(entryOf(localModel(id), catalog)).toBe(entry);
  });

  it('of another name belongs to none, unless it was downloaded by its reference', () => {
    expect(entryOf(localModel('gemma-4-E4B-it-Q4_K_M'), catalog)).toBeUndefined();
    expect(entryOf(localModel('mine', { reference: 'o/g:UD-Q4_K_XL' }), catalog)).toBe(entry);
  });

  it('has its quant in its name only beside another one', () => {
    const [four, eight, own] = ['gemma-4-E2B-it-Q4_0', 'gemma-4-E2B-it-Q8_0', 'mine-Q4_0'].map((id) =>
      localModel(id, { account: account({ quant: id.slice(-4) }) }),
    ) as [ReturnType<typeof localModel>, ReturnType<typeof localModel>, ReturnType<typeof localModel>];
    expect(nameOf(four, [four, own], catalog)).toBe('Gemma 4 E2B');
    expect(nameOf(four, [four, eight], catalog)).toBe('Gemma 4 E2B Q4_0');
    expect(nameOf(own, [own], catalog)).toBe('mine-Q4_0');
  });

  it('says what it is good for', () => {
    const of = (parts: Parameters<typeof account>[0], inputs: ('text' | 'image' | 'audio')[] = ['text']) =>
      purposeOf(localModel('x', { account: account(parts), input_modalities: inputs }));
    expect(purposeOf(localModel('x'), entry)).toBe('Good at something.');
    expect(of({})).toBe('Chat.');
    expect(of({ thinking: true, tools: true }, ['text', 'image', 'audio'])).toBe(
      'Chat about text, images and sound, with thinking and tools.',
    );
    expect(of({ kind: 'embedding' })).toBe('Embeddings for search in documents.');
    expect(of({ kind: 'reranking' })).toBe('Sorts search results by how well they match.');
    expect(purposeOf(localModel('x', { account: null }))).toBe('');
  });

  it('can chat with a chat template, and unless its file could not be read', () => {
    expect(canChat(localModel('x'))).toBe(true);
    expect(canChat(localModel('x', { account: null }))).toBe(true);
    expect(canChat(localModel('x', { account: account({ chat_template: false }) }))).toBe(false);
    expect(canChat(localModel('x', { account: account({ kind: 'embedding' }) }))).toBe(false);
  });
});

describe('figures', () => {
  it('order quants by size, those of unknown size last', () => {
    const files = [3, null, 1].map((size_bytes) => offered(`o/r:${size_bytes}`, { size_bytes }));
    expect(bySize(files).map(({ quant }) => quant)).toEqual(['1', '3', 'null']);
  });

  it('write parameters as on model cards', () => {
    expect(
      [134_515_008, 999_900_000, 4_020_000_000, 4_650_000_000, 30_500_000_000].map(parameterLabel),
    ).toEqual(['135M', '1B', '4B', '4.7B', '31B']);
  });

  it('have an address', () => {
    expect(pageOf('a/b c')).toBe('#models/a%2Fb%20c');
  });
});

import { describe, expect, it } from 'vitest';
import { parseQuery } from './query';

describe('a typed query', () => {
  it.each([
    'unsloth/gemma-4-E2B-it-GGUF',
    ' https://huggingface.co/unsloth/gemma-4-E2B-it-GGUF ',
    'https://huggingface.co/unsloth/gemma-4-E2B-it-GGUF/',
    'https://huggingface.co/unsloth/gemma-4-E2B-it-GGUF/tree/main',
    'https://huggingface.co/unsloth/gemma-4-E2B-it-GGUF?library=gguf',
    'hf.co/unsloth/gemma-4-E2B-it-GGUF',
  ])('is a repository: %s', (text) => {
    expect(parseQuery(text)).toEqual({ repository: 'unsloth/gemma-4-E2B-it-GGUF' });
  });

  it.each([
    'unsloth/gemma-4-E2B-it-GGUF:Q4_K_M',
    'unsloth/gemma-4-E2B-it-GGUF/UD/gemma.gguf',
    'gemma-4-e4b:Q4_K_M',
    'gemma4:e4b',
    'https://example.com/models/a.gguf',
    'https://huggingface.co/o/r/resolve/main/a.gguf',
  ])('is one file: %s', (text) => {
    expect(parseQuery(text)).toEqual({ reference: text });
  });

  it('is a quant of a repository whose page was copied', () => {
    expect(parseQuery('hf.co/o/r:Q4_K_M')).toEqual({ reference: 'o/r:Q4_K_M' });
  });

  it.each(['gemma', 'qwen 3.5 coder', 'what: ever', 'a/b/ c'])('is keywords: %s', (text) => {
    expect(parseQuery(text)).toEqual({ keywords: text });
  });

  it('is nothing when blank', () => {
    expect(parseQuery('  ')).toBeNull();
  });
});

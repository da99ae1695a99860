import { describe, expect, it } from 'vitest';
import { lookup } from './lookup';

describe('what somebody typed', () => {
  it.each([
    'unsloth/gemma-4-E2B-it-GGUF',
    ' https://huggingface.co/unsloth/gemma-4-E2B-it-GGUF ',
    'https://huggingface.co/unsloth/gemma-4-E2B-it-GGUF/',
    'https://huggingface.co/unsloth/gemma-4-E2B-it-GGUF/tree/main',
    'https://huggingface.co/unsloth/gemma-4-E2B-it-GGUF?library=gguf',
    'hf.co/unsloth/gemma-4-E2B-it-GGUF',
  ])('is a repository: %s', (text) => {
    expect(lookup(text)).toEqual({ repository: 'unsloth/gemma-4-E2B-it-GGUF' });
  });

  it.each([
    'unsloth/gemma-4-E2B-it-GGUF:Q4_K_M',
    'unsloth/gemma-4-E2B-it-GGUF/UD/gemma.gguf',
    'gemma-4-e4b:Q4_K_M',
    'gemma4:e4b',
    'https://example.com/models/a.gguf',
    'https://huggingface.co/o/r/resolve/main/a.gguf',
  ])('is one file: %s', (text) => {
    expect(lookup(text)).toEqual({ reference: text });
  });

  it('is a quant of a repository whose page was copied', () => {
    expect(lookup('hf.co/o/r:Q4_K_M')).toEqual({ reference: 'o/r:Q4_K_M' });
  });

  it.each(['gemma', 'qwen 3.5 coder', 'what: ever', 'a/b/ c'])('is words to search for: %s', (text) => {
    expect(lookup(text)).toEqual({ words: text });
  });

  it('is nothing', () => {
    expect(lookup('  ')).toBeNull();
  });
});

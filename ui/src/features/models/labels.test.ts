import { describe, expect, it } from 'vitest';
import { download, GIB, offered, refused, verdict } from '../../testing/models';
import {
  addedBy,
  contextLabel,
  expectedSpeed,
  fitOf,
  listModalities,
  percent,
  preselected,
  progressText,
  quantLabel,
  sizes,
  speedError,
  stem,
} from './labels';

describe('a verdict in one word', () => {
  it('is fits, tight, reads from disk or too large', () => {
    expect(fitOf(verdict())).toBe('fits');
    expect(fitOf(verdict({ cautions: [{ kind: 'shorter_context', context_tokens: 4096 }] }))).toBe('fits');
    expect(fitOf(verdict({ total_bytes: 10.7 * GIB }))).toBe('fits');
    expect(fitOf(verdict({ total_bytes: 10.9 * GIB }))).toBe('tight');
    const gpu = { layers: 29, layers_all: 30, bytes: GIB, limit_bytes: GIB, without_experts: false };
    expect(fitOf(verdict({ gpu }))).toBe('tight');
    expect(fitOf(verdict({ gpu: { ...gpu, layers: 30 } }))).toBe('fits');
    expect(fitOf(verdict({ placement: 'mmap' }))).toBe('disk');
    expect(fitOf(refused())).toBe('refused');
  });

  it('gives a speed as a range, or as one figure', () => {
    const speed = { active_bytes: 0, paged_bytes: 0, measured: null, error: null };
    expect(expectedSpeed({ ...speed, low: 4.25, high: 12.6 })).toBe('4.3 to 13 tok/s');
    expect(expectedSpeed({ ...speed, low: 20.1, high: 20.3 })).toBe('20 tok/s');
  });

  it('compares the measured speed with the expected one', () => {
    expect([0, -0.2, 0.134].map(speedError)).toEqual([
      'as expected',
      '20 % slower than expected',
      '13 % faster than expected',
    ]);
  });
});

describe('a download’s text', () => {
  it('has amounts, rate and time in progress, and no rate when paused', () => {
    expect(progressText(download('a'))).toBe('Downloading · 1 GB of 4 GB · 50 MB/s · 1 min left');
    expect(progressText(download('a', { state: 'paused' }))).toBe('Paused · 1 GB of 4 GB');
    expect(progressText(download('a', { state: 'done' }))).toBe('Downloaded and verified · 4 GB');
  });

  it('has no percentage while the size is unknown', () => {
    const unknown = download('a', { total_bytes: null, eta_seconds: null });
    expect(percent(unknown)).toBeNull();
    expect(progressText(unknown)).toBe('Downloading · 1 GB · 50 MB/s');
  });

  it('is below 100 % before the last byte', () => {
    expect(percent(download('a', { received_bytes: 3_999_999_999 }))).toBe('99 %');
    expect(percent(download('a', { received_bytes: 4_000_000_000 }))).toBe('100 %');
  });

  it('is named after its file', () => {
    expect(stem('sub/folder/model-Q4.GGUF')).toBe('model-Q4');
  });
});

describe('a context', () => {
  it('is written as on model cards if round', () => {
    expect([8192, 131072, 1048576, 1536, 2000, 512].map(contextLabel)).toEqual([
      '8K',
      '128K',
      '1M',
      '1.5K',
      '2,000',
      '512',
    ]);
  });
});

describe('images and sound', () => {
  it('are listed as in a sentence', () => {
    expect(listModalities(['text', 'image', 'audio'])).toBe('text, images and sound');
    expect(listModalities(['text'])).toBe('text');
    expect(listModalities([])).toBe('');
    expect(addedBy({ input_modalities: ['text', 'image'] })).toBe('images');
    expect(addedBy({ input_modalities: [] })).toBe('images and sound');
  });

  it('have a size of their own in a download', () => {
    const model = { name: 'gemma.gguf', size_bytes: 3_100_000_000 };
    const projector = { name: 'mmproj-gemma.gguf', size_bytes: 1_000_000_000 };
    expect(sizes({ files: [model, projector] })).toBe('3.1 GB + 1 GB for images and sound');
    expect(sizes({ files: [model] })).toBeNull();
    expect(sizes({ files: [model, { ...projector, size_bytes: null }] })).toBeNull();
  });
});

describe('a list of quants', () => {
  it('shows size, fit and recommendation of each', () => {
    expect(quantLabel(offered('o/r:Q4_K_M', { loss: 'slight', recommended: true }))).toBe(
      'Q4_K_M, 5 GB, fits, slight loss, recommended',
    );
    expect(quantLabel(offered('o/r:Q8_0', { size_bytes: null, fit: refused() }))).toBe(
      'Q8_0, size unknown, too large',
    );
  });

  it('starts with the recommended one, else the first not refused', () => {
    const large = offered('o/r:Q8_0', { fit: refused() });
    const small = offered('o/r:Q4_0');
    expect(preselected([large, small, offered('o/r:Q3', { recommended: true })])?.quant).toBe('Q3');
    expect(preselected([large, small])?.quant).toBe('Q4_0');
    expect(preselected([large])?.quant).toBe('Q8_0');
    expect(preselected([])).toBeUndefined();
  });
});

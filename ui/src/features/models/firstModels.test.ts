import { describe, expect, it } from 'vitest';
import { catalogModel, offered, refused } from '../../testing/models';
import { firstModels } from './firstModels';

const of = (name: string, gigabytes: number, parts = {}, file = {}) =>
  catalogModel(name, {
    quants: [offered(`o/${name}:Q4`, { recommended: true, size_bytes: gigabytes * 1e9, ...file })],
    ...parts,
  });

describe('the first models', () => {
  it('are the smallest default and the smallest of all', () => {
    const catalog = [
      of('Large', 11, { default: true, tier: 'heavy' }),
      of('Quick', 3, { default: true, tier: 'fast' }),
      of('Other', 2),
      of('Starter', 0.1),
      of('Embedder', 0.01, { kind: 'embedding' }),
    ];
    expect(firstModels(catalog).map(({ name, tier }) => [name, tier])).toEqual([
      ['Quick', 'fast'],
      ['Starter', null],
    ]);
  });

  it('count the projector that comes with them', () => {
    const projector = { file: 'mmproj.gguf', size_bytes: 1e9, input_modalities: [] };
    const [seeing, text] = firstModels([of('Seeing', 3, { default: true, projector }), of('Text', 0.5)]);
    expect([seeing?.total_bytes, text?.total_bytes]).toEqual([4e9, 0.5e9]);
  });

  it('leave out what does not fit, and name one that is both only once', () => {
    const small = of('Small', 1, { default: true });
    expect(firstModels([small, of('Tiny', 0.1, {}, { fit: refused() })]).map(({ name }) => name)).toEqual([
      'Small',
    ]);
    expect(firstModels([])).toEqual([]);
  });
});

import { describe, expect, it } from 'vitest';
import type { Config } from '../../platform/openapi';
import { isBeyondLoopback } from '../access/listen';
import { findModel } from '../models/models';
import { tierOrder } from './config.svelte';

describe('settings', () => {
  it.each(['127.0.0.1:11435', 'localhost:80', '[::1]:11435', '127.1.2.3:1'])(
    'treat %s as this computer only',
    (listen) => {
      expect(isBeyondLoopback(listen)).toBe(false);
    },
  );

  it.each(['0.0.0.0:11435', '192.168.1.5:80', '[::]:11435', 'mac.local:11435', '127.0.0.1.example.com:80'])(
    'treat %s as reachable from other computers',
    (listen) => {
      expect(isBeyondLoopback(listen)).toBe(true);
    },
  );

  it('list tiers in reading order', () => {
    const tiers = Object.fromEntries(['coder', 'heavy', 'alpha', 'fast', 'primary'].map((id) => [id, {}]));
    expect(tierOrder({ tiers } as unknown as Config)).toEqual(['fast', 'primary', 'heavy', 'alpha', 'coder']);
  });

  it('find a model by id, file name or path, and not by part of a name', () => {
    const models = [
      { id: 'smol', path: '/m/smol.gguf' },
      { id: 'mol', path: '/m/mol.gguf' },
    ];
    expect(findModel(models, 'mol')?.path).toBe('/m/mol.gguf');
    expect(findModel(models, 'mol.gguf')?.id).toBe('mol');
    expect(findModel(models, '/m/smol.gguf')?.id).toBe('smol');
    expect(findModel(models, 'ol.gguf')).toBeUndefined();
    expect(findModel(models, '')).toBeUndefined();
  });
});

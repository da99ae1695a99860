import { afterEach, expect, it } from 'vitest';
import { forgetAgents, keepAgent, readAgent } from './keptAgents';

const agent = { folder: '/toy', reach: { documents: true, web: '' as const, address: '' } };

afterEach(() => localStorage.clear());

it('keeps the folder of a chat until it is turned off', () => {
  keepAgent('a', agent);
  keepAgent('b', { ...agent, folder: '/other' });
  expect(readAgent('a')).toEqual(agent);
  keepAgent('a', null);
  expect(readAgent('a')).toBeNull();
  expect(readAgent('b')?.folder).toBe('/other');
  forgetAgents();
  expect(readAgent('b')).toBeNull();
});

it('takes nothing that something else has written', () => {
  for (const written of ['no JSON', '{}', '[1]', '[["a"]]', '[["a", {"folder": 1}]]']) {
    localStorage.setItem('tierbar-agents', written);
    expect(readAgent('a')).toBeNull();
  }
});

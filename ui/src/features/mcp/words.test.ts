import { describe, expect, it } from 'vitest';
import type { McpServerConfig } from '../../platform/openapi';
import { describeAccess, describePlace, splitCommand } from './words';

const PROGRAM: McpServerConfig = {
  command: ['npx', '-y', 'notes', 'My Notes'],
  url: '',
  folder: '',
  read: [],
  network: false,
  variables: [],
  key_variable: '',
  tools: [],
  enabled: true,
};

describe('an MCP server', () => {
  it('has a command of words with quotes', () => {
    expect(splitCommand('  npx -y  notes ')).toEqual(['npx', '-y', 'notes']);
    expect(splitCommand(`a "b c" 'd "e' f"g h"`)).toEqual(['a', 'b c', 'd "e', 'fg h']);
    expect(splitCommand('a ""')).toEqual(['a', '']);
    expect(splitCommand(' ')).toEqual([]);
    expect(splitCommand('a "b')).toBeNull();
    expect(splitCommand(describePlace(PROGRAM))).toEqual(PROGRAM.command);
  });

  it('is described with what its program may use', () => {
    expect(describeAccess(PROGRAM)).toBe('Can use neither the network nor your files.');
    expect(describeAccess({ ...PROGRAM, folder: '~/Notes', network: true })).toBe(
      'Can use the network, and read and change files in ~/Notes.',
    );
    const read = ['~/venv', '~/.pyenv/versions/3.12'];
    expect(describeAccess({ ...PROGRAM, read })).toBe(
      'Can read files in ~/venv, ~/.pyenv/versions/3.12, without the network.',
    );
    expect(describeAccess({ ...PROGRAM, folder: '~/Notes', read: ['~/venv'], network: true })).toBe(
      'Can use the network, read and change files in ~/Notes, and read files in ~/venv.',
    );
    expect(describeAccess({ ...PROGRAM, url: 'https://a.example' })).toBeNull();
  });
});

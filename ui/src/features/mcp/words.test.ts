import { describe, expect, it } from 'vitest';
import type { McpServerConfig } from '../../platform/openapi';
import { describeAccess, describePlace, secretOf, splitCommand, whatIsSet } from './words';

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

  it('is told with what its program may use', () => {
    expect(describeAccess(PROGRAM)).toBe('Can use neither the network nor files of yours.');
    expect(describeAccess({ ...PROGRAM, folder: '~/Notes', network: true })).toBe(
      'Can use the network, and read and change files in ~/Notes.',
    );
    expect(describeAccess({ ...PROGRAM, url: 'https://a.example' })).toBeNull();
  });

  it('is written with what is set alone', () => {
    expect(whatIsSet(PROGRAM)).toEqual({ command: PROGRAM.command });
    expect(whatIsSet({ ...PROGRAM, network: true, folder: '/a', enabled: false })).toEqual({
      command: PROGRAM.command,
      network: true,
      folder: '/a',
      enabled: false,
    });
  });

  it('has its key under its host, as the host names it', () => {
    const of = (url: string) => secretOf('notes', { url });
    expect(of('')).toBe('mcp-notes');
    expect(of('https://MCP.example.com/mcp?x')).toBe('mcp.example.com');
    expect(of('https://mcp.example.com:443/mcp')).toBe('mcp.example.com:443');
    expect(of('http://127.0.0.1:8000')).toBe('127.0.0.1:8000');
    expect(of('http://localhost/mcp')).toBe('localhost:80');
    expect(of('http://[::1]:80/mcp')).toBe('[::1]:80');
  });
});

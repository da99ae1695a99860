import { render } from '@testing-library/svelte';
import { describe, expect, it } from 'vitest';
import AgentSteps from './AgentSteps.svelte';
import { describeTool, endOfTool, laidOut, type ToolUse, toolUses } from './tools';

const use = (name: string, written: string): ToolUse => ({
  id: '1',
  name,
  arguments: written,
  result: 'x',
  failed: false,
});
const said = (name: string, written: string) => describeTool(use(name, written)).text;

describe('the tools of an answer', () => {
  it('are calls with their results', () => {
    const uses = toolUses([
      { type: 'tool_call', id: 'a', name: 'one', arguments: '{}' },
      { type: 'tool_call', id: 'b', name: 'two', arguments: '' },
      { type: 'tool_result', id: 'b', text: 'no', failed: true },
      { type: 'tool_result', id: 'c', text: 'lost', failed: false },
      { type: 'text', text: 'So.' },
    ]);
    expect(uses.map(({ name, result, failed }) => [name, result, failed])).toEqual([
      ['one', null, false],
      ['two', 'no', true],
      ['', 'lost', false],
    ]);
    expect(uses.map(endOfTool)).toEqual(['No result', 'Failed', null]);
  });

  it('are described by what they did', () => {
    expect(said('web_search', '{"query": " Rhône "}')).toBe('Searched the web for “Rhône”');
    expect(said('web', '{"search_query": "Rhône"}')).toBe('Searched the web for “Rhône”');
    expect(said('fetch', '{"url": "https://example.com/a"}')).toBe('Read example.com');
    for (const written of ['', 'null', '[1]', '{"query": 3}', '{"url": "x"}', 'print(1)'])
      expect(said('search', written)).toBe('Used search');
    expect(said('', '')).toBe('Used a tool');
    // Those of an agent have the words that stood there while it worked.
    expect(said('search_documents', '{"query":"lease"}')).toBe('Searched your documents for “lease”');
    expect(said('run_command', '{"command":"make","network":false}')).toBe('Ran make');
    expect(said('write_file', '{"path":"a.md","diff":""}')).toBe('Wrote a.md');
    expect(said('edit_file', '{"path":"a.md","diff":""}')).toBe('Edited a.md');
    expect(said('list_files', '{"path":""}')).toBe('Listed the folder');
    expect(said('list_files', '{"path":"src"}')).toBe('Listed src');
    // The words of another server's search are not sent to the web.
    expect(said('notes__search', '{"query":"lease"}')).toBe('Used search of notes');
    expect(said('connect', '{"server":"notes"}')).toBe('Connected to notes');
    expect(said('run_command', '')).toBe('Used run_command');
  });

  it('are shown with a line for each value', () => {
    expect(laidOut('{"a":1}')).toBe('{\n  "a": 1\n}');
    expect(laidOut('print(1)')).toBe('print(1)');
  });
});

it('shows marks of direction in the step of an agent', () => {
  const step = use('run_command', '{"command":"ls \u202egnp.exe"}');
  render(AgentSteps, { steps: [{ ...step, result: '\u202efdp.exe' }] });
  expect(document.querySelectorAll('summary .direction, code .direction')).toHaveLength(2);
});

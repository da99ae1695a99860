import type { AgentOptions } from '../../platform/openapi';
import { fieldsOf } from './fields';
import type { ToolUse } from './tools';

/** What an agent may use beside its folder. */
export interface AgentReach {
  documents: boolean;
  /** The web search engine; empty for none. */
  web: '' | 'duckduckgo' | 'brave' | 'searxng';
  /** That of the SearXNG. */
  address: string;
}

/** The `agent` of a turn. Reading changes nothing, and addresses that a search has found say nothing new. */
export function agentOptions(folder: string, { documents, web, address }: AgentReach): AgentOptions {
  const search = web === 'searxng' ? address.trim() : web;
  return {
    folder,
    allow: { reading: true, ...(web !== '' && { known_pages: true }) },
    ...(documents && { documents }),
    ...(web !== '' && { search, pages: true }),
  };
}

/** The fields of a step's arguments that say what it is about, the first that is there. */
const SUBJECTS = ['command', 'path', 'query', 'url', 'server'];
/** The tools that change files. */
const CHANGES = ['write_file', 'edit_file'];

/** The step in one line. */
export function describeStep({ name, arguments: text }: ToolUse): string {
  const subject = subjectOf(text);
  switch (name) {
    case 'run_command':
      return `Ran ${subject}`;
    case 'read_file':
      return `Read ${subject}`;
    case 'list_files':
      return subject === '' ? 'Listed the folder' : `Listed ${subject}`;
    case 'write_file':
      return `Wrote ${subject}`;
    case 'edit_file':
      return `Edited ${subject}`;
    case 'search_web':
      return `Searched the web for “${subject}”`;
    case 'search_documents':
      return `Searched your documents for “${subject}”`;
    case 'read_page':
      return `Opened ${subject}`;
    case 'connect':
      return `Connected to ${subject}`;
    default: {
      const [server, tool] = serverTool(name) ?? [];
      return server ? `Used ${tool} of ${server}` : `Used ${name}`;
    }
  }
}

/** The MCP server and its tool that a step's name stands for; `null` for another one. */
export function serverTool(name: string): [string, string] | null {
  const [, server, tool] = /^([a-z0-9-]{1,32})__(.+)$/.exec(name) ?? [];
  return server && tool ? [server, tool] : null;
}

/** Whether an agent has changed files in these steps, so that it can be undone. */
export function changedFiles(steps: ToolUse[]): boolean {
  return steps.some(({ name, result, failed }) => CHANGES.includes(name) && result !== null && !failed);
}

function subjectOf(text: string): string {
  const fields = fieldsOf(text);
  const found = SUBJECTS.map((name) => fields?.[name]);
  const subject = found.find((value) => typeof value === 'string');
  return typeof subject === 'string' ? subject : '';
}

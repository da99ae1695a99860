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
const SUBJECTS = ['command', 'path', 'query', 'url', 'name'];

/** The step in one line. */
export function describeStep({ name, arguments: text }: ToolUse): string {
  const subject = subjectOf(text);
  switch (name) {
    case 'run_command':
      return `Ran ${subject}`;
    case 'read_file':
      return subject === '' ? 'Read the folder' : `Read ${subject}`;
    case 'write_file':
      return `Wrote ${subject}`;
    case 'search_web':
      return `Searched the web for “${subject}”`;
    case 'search_documents':
      return `Searched your documents for “${subject}”`;
    case 'read_page':
      return `Opened ${subject}`;
    case 'tool':
      return describeTool(text, subject);
    default:
      return `Used ${subject || name}`;
  }
}

/** A tool of an MCP server; without its name, the server did not answer. */
function describeTool(text: string, name: string): string {
  const server = fieldsOf(text)?.server;
  if (typeof server !== 'string') return `Used ${name}`;
  return name === '' ? `Connected to ${server}` : `Used ${name} of ${server}`;
}

function subjectOf(text: string): string {
  const fields = fieldsOf(text);
  const found = SUBJECTS.map((name) => fields?.[name]);
  const subject = found.find((value) => typeof value === 'string');
  return typeof subject === 'string' ? subject : '';
}

import type { IconName } from '../../lib/Icon.svelte';
import type { Part } from '../../platform/openapi';
import { describeStep, serverTool } from './agent';
import { fieldsOf } from './fields';

/** A tool that the model called, and what came of it. */
export interface ToolUse {
  id: string;
  name: string;
  /** What the model wrote: JSON, or what is none. */
  arguments: string;
  /** `null` without one. */
  result: string | null;
  failed: boolean;
}

/** The tools of Tierbar's own agent. */
const AGENTS: Record<string, IconName> = {
  run_command: 'play',
  read_file: 'document',
  list_files: 'folder',
  write_file: 'pencil',
  edit_file: 'pencil',
  search_web: 'search',
  search_documents: 'search',
  read_page: 'document',
  connect: 'plug',
};

/** The calls of a message with their results, in the order of the calls. */
export function toolUses(parts: Part[]): ToolUse[] {
  const uses: ToolUse[] = [];
  for (const part of parts) {
    if (part.type === 'tool_call') {
      const { id, name, arguments: written } = part;
      uses.push({ id, name, arguments: written, result: null, failed: false });
    } else if (part.type === 'tool_result') {
      const { id, text: result, failed } = part;
      const called = uses.find((use) => use.id === id && use.result === null);
      if (called) Object.assign(called, { result, failed });
      // Its call was not stored.
      else uses.push({ id, name: '', arguments: '', result, failed });
    }
  }
  return uses;
}

/** What the model did, in a few words, with an icon. */
export function describeTool(use: ToolUse): { icon: IconName; text: string } {
  const { name } = use;
  const fields = fieldsOf(use.arguments);
  const own = AGENTS[name] ?? (serverTool(name) && 'plug');
  if (own && fields) return { icon: own, text: describeStep(use) };
  const query = textIn(fields, ['query', 'q', 'search_query']);
  if (query && /search|^web$/i.test(name)) return { icon: 'search', text: `Searched the web for “${query}”` };
  const host = hostOf(textIn(fields, ['url', 'uri']));
  if (host) return { icon: 'document', text: `Read ${host}` };
  return { icon: 'plug', text: name === '' ? 'Used a tool' : `Used ${name}` };
}

/** How it ended, unless with a result. */
export function endOfTool({ result, failed }: ToolUse): string | null {
  if (failed) return 'Failed';
  return result === null ? 'No result' : null;
}

/** JSON with a line for each value; anything else as it is. */
export function laidOut(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/** The first of these fields that has a text. */
function textIn(fields: Record<string, unknown> | null, names: string[]): string | null {
  for (const name of names) {
    const value = fields?.[name];
    if (typeof value === 'string' && value.trim() !== '') return value.trim();
  }
  return null;
}

function hostOf(url: string | null): string | null {
  try {
    return url === null ? null : new URL(url).host || null;
  } catch {
    return null;
  }
}

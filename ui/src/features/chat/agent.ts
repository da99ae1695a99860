/** One step of an agent. */
export interface AgentStep {
  id: string;
  name: string;
  /** JSON as text. */
  arguments: string;
  /** `null` until it has ended. */
  result: string | null;
  failed: boolean;
}

/** The fields of a step's arguments that say what it is about, the first that is there. */
const SUBJECTS = ['command', 'path', 'query', 'url', 'name'];

/** The step in one line. */
export function describeStep({ name, arguments: text, result, failed }: AgentStep): string {
  const subject = subjectOf(text);
  const end = result === null ? '…' : failed ? ' (failed)' : '';
  switch (name) {
    case 'run_command':
      return `Ran ${subject}${end}`;
    case 'read_file':
      return `Read ${subject || 'the folder'}${end}`;
    case 'write_file':
      return `Wrote ${subject}${end}`;
    case 'search_web':
      return `Searched the web for “${subject}”${end}`;
    case 'read_page':
      return `Opened ${subject}${end}`;
    default:
      return `Used ${subject || name}${end}`;
  }
}

function subjectOf(text: string): string {
  try {
    const fields: unknown = JSON.parse(text);
    if (typeof fields !== 'object' || fields === null) return '';
    const found = SUBJECTS.map((name) => (fields as Record<string, unknown>)[name]);
    const subject = found.find((value) => typeof value === 'string');
    return typeof subject === 'string' ? subject : '';
  } catch {
    return '';
  }
}

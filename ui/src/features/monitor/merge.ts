import type { Entry, Status } from '../../platform/openapi';

/**
 * Returns the status after one event of `/tierbar/v1/events`: a snapshot replaces it, a change replaces the top-level
 * fields it carries. A change before the first snapshot, an unknown event and a body that is not an object
 * leave it as it is.
 */
export function mergeStatus(status: Status | null, event: string, data: string): Status | null {
  if (event !== 'snapshot' && event !== 'change') return status;
  const body = object(data);
  if (body === null) return status;
  if (event === 'snapshot') return body as Status;
  return status === null ? null : { ...status, ...(body as Partial<Status>) };
}

/** Returns the entry that a `log` event carries; `null` if it carries something else. */
export function readEntry(data: string): Entry | null {
  const body = object(data);
  return body !== null && 'id' in body && 'sentence' in body ? (body as Entry) : null;
}

function object(data: string): object | null {
  try {
    const body: unknown = JSON.parse(data);
    return typeof body === 'object' && !Array.isArray(body) ? body : null;
  } catch {
    return null;
  }
}

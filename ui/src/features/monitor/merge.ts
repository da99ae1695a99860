import type { Status } from '../../platform/api';

/**
 * The status after one event of `/tierbar/v1/events`: a snapshot replaces it, a change replaces the top-level
 * fields it carries. A change before the first snapshot, an unknown event and a body that is not an object
 * leave it as it is.
 */
export function mergeStatus(status: Status | null, event: string, data: string): Status | null {
  if (event !== 'snapshot' && event !== 'change') return status;
  let body: unknown;
  try {
    body = JSON.parse(data);
  } catch {
    return status;
  }
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return status;
  if (event === 'snapshot') return body as Status;
  return status === null ? null : { ...status, ...(body as Partial<Status>) };
}

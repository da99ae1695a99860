import { type Api, asApiError, ConnectionError } from '../../lib/http';
import { readSse } from '../../lib/sse';
import type { TurnEvent } from '../../platform/openapi';

/** How long to wait before a broken connection is tried again. */
const PAUSES_MS = [200, 1000, 3000];

/**
 * Yields the events of a turn to its last. A connection that breaks is made again, from the event after the last one that came: the turn
 * runs on in the host. Throws `not_found` for a turn that ended a while ago, and a `ConnectionError` when the host is gone.
 */
export async function* followTurn(
  api: Api,
  path: { id: string; turn: string },
  signal: AbortSignal,
): AsyncGenerator<TurnEvent> {
  const route = '/tierbar/v1/chats/{id}/turns/{turn}/events';
  let after = 0;
  let failures = 0;
  for (;;) {
    try {
      const response = await api.stream('get', route, { path, query: { after }, signal });
      if (response.body === null) throw new ConnectionError('The connection to Tierbar was lost.');
      for await (const item of readSse(response.body)) {
        if ('comment' in item) continue;
        const event = parse(item.data);
        after = Number(item.id ?? after);
        failures = 0;
        yield event;
        if (event.type === 'finished' || event.type === 'failed') return;
      }
      throw new ConnectionError('The connection to Tierbar was lost.');
    } catch (cause) {
      if (signal.aborted) throw cause;
      const error = asApiError(cause);
      const lasting = error.status >= 400 && error.status < 500;
      const pause = PAUSES_MS[failures];
      if (lasting || pause === undefined) throw error;
      failures += 1;
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  }
}

function parse(data: string): TurnEvent {
  try {
    return JSON.parse(data) as TurnEvent;
  } catch {
    throw new ConnectionError('The connection to Tierbar was lost.');
  }
}

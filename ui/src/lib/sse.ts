/** One event of a server-sent stream, or one of its comment lines. */
export type SseItem = { event: string; data: string; id?: string } | { comment: string };

/**
 * Reads server-sent events off a response's body. EventSource cannot be used: it sends no headers and no body.
 * Chunks may be cut anywhere, within a character or between CR and LF too. An event whose closing blank line
 * is missing is dropped, as the standard requires.
 */
export async function* readSse(body: ReadableStream<Uint8Array>): AsyncGenerator<SseItem> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  let event = '';
  let data: string[] = [];
  let id: string | undefined;
  try {
    for (;;) {
      const { value, done } = await reader.read();
      rest += decoder.decode(value, { stream: !done });
      for (;;) {
        const end = rest.search(/[\r\n]/);
        if (end < 0) break;
        // A CR at the very end may be the first half of CRLF: wait for what follows.
        if (rest[end] === '\r' && end + 1 === rest.length && !done) break;
        const line = rest.slice(0, end);
        rest = rest.slice(end + (rest.startsWith('\r\n', end) ? 2 : 1));
        if (line === '') {
          if (data.length > 0) {
            const item = { event: event || 'message', data: data.join('\n') };
            yield id === undefined ? item : { ...item, id };
          }
          event = '';
          data = [];
          id = undefined;
          continue;
        }
        const colon = line.indexOf(':');
        const field = colon < 0 ? line : line.slice(0, colon);
        const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
        if (field === '') yield { comment: value };
        else if (field === 'event') event = value;
        else if (field === 'data') data.push(value);
        else if (field === 'id') id = value;
      }
      if (done) return;
    }
  } finally {
    // A consumer's `break` gets here too: closing the connection ends the generation.
    await reader.cancel().catch(() => {});
  }
}

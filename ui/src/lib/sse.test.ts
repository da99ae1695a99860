import { describe, expect, it } from 'vitest';
import { readSse, type SseItem } from './sse';

function body(...chunks: Uint8Array[]): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk);
      controller.close();
    },
  });
}

async function read(...chunks: (string | Uint8Array)[]): Promise<SseItem[]> {
  const items: SseItem[] = [];
  const bytes = chunks.map((chunk) => (typeof chunk === 'string' ? new TextEncoder().encode(chunk) : chunk));
  for await (const item of readSse(body(...bytes))) items.push(item);
  return items;
}

const TEXT =
  ': loading\n\nevent: snapshot\ndata: {"a": "grüße 🦙"}\n\ndata: one\ndata: two\n\ndata: [DONE]\n\n';
const ITEMS = [
  { comment: 'loading' },
  { event: 'snapshot', data: '{"a": "grüße 🦙"}' },
  { event: 'message', data: 'one\ntwo' },
  { event: 'message', data: '[DONE]' },
];

describe('server-sent events', () => {
  it.each([
    ['LF', TEXT],
    ['CRLF', TEXT.replaceAll('\n', '\r\n')],
    ['CR', TEXT.replaceAll('\n', '\r')],
  ])('come out the same wherever the stream is cut, with %s line ends', async (_name, text) => {
    const bytes = new TextEncoder().encode(text);
    for (let cut = 0; cut <= bytes.length; cut += 1) {
      expect(await read(bytes.slice(0, cut), bytes.slice(cut)), `cut at byte ${cut}`).toEqual(ITEMS);
    }
    expect(await read(...Array.from(bytes, (byte) => Uint8Array.of(byte)))).toEqual(ITEMS);
  });

  it('keep everything after the first colon and drop one space only', async () => {
    expect(await read('data:  a: b\n\ndata:c\n\ndata\n\n')).toEqual([
      { event: 'message', data: ' a: b' },
      { event: 'message', data: 'c' },
      { event: 'message', data: '' },
    ]);
  });

  it('without a closing blank line are dropped', async () => {
    expect(await read('data: whole\n\ndata: half\n')).toEqual([{ event: 'message', data: 'whole' }]);
  });

  it('without data are no events, and do not name the next one', async () => {
    expect(await read('event: ping\n\ndata: x\n\n')).toEqual([{ event: 'message', data: 'x' }]);
  });

  it('close the connection when the reader stops listening', async () => {
    let closed = false;
    const endless = new ReadableStream<Uint8Array>({
      pull(controller) {
        controller.enqueue(new TextEncoder().encode('data: x\n\n'));
      },
      cancel() {
        closed = true;
      },
    });
    for await (const _ of readSse(endless)) break;
    expect(closed).toBe(true);
  });
});

import { beforeEach, describe, expect, it, vi } from 'vitest';
import { Api } from '../../lib/http';
import { Network, refusal, type Stream, until } from '../../testing/host';
import { Conversation } from './conversation.svelte';

let network: Network;
let chat: Conversation;
let loadMs: number | null;

beforeEach(() => {
  network = new Network();
  loadMs = null;
  chat = new Conversation({
    api: new Api(async () => ({ url: '', token: 't0' })),
    onSummary: () => {},
    loadWithin: () => loadMs,
  });
});

/** Sends a message and waits until the host has been asked for the answer. */
async function ask(text: string): Promise<{ stream: Stream; done: Promise<void> }> {
  const before = network.completions.length;
  const done = chat.send(text);
  await until(() => network.completions.length > before);
  return { stream: network.completions.at(-1) as Stream, done };
}

const shown = () => chat.messages.map(({ role, content, finish }) => [role, content, finish]);
const kept = (id = 'c1') => network.messages(id).map(({ role, content, finish }) => [role, content, finish]);

describe('sending a message', () => {
  it('saves it first, then streams the answer, then saves that with its figures', async () => {
    chat.model = 'fast';
    const { stream, done } = await ask('Hello?');
    expect(kept()).toEqual([['user', 'Hello?', null]]);
    expect(stream.request.headers.get('authorization')).toBe('Bearer t0');
    expect(stream.request.body).toEqual({
      model: 'fast',
      messages: [{ role: 'user', content: 'Hello?' }],
      stream: true,
      stream_options: { include_usage: true },
    });
    stream.words('Hi ');
    stream.words('there');
    await until(() => chat.live?.text === 'Hi there');
    expect(chat.live).toMatchObject({ tier: 'fast', model: 'smol' });
    stream.finish('stop', 41.5);
    await done;
    expect(chat.busy).toBe(false);
    expect(chat.live).toBeNull();
    expect(network.messages('c1')[1]).toEqual({
      role: 'assistant',
      content: 'Hi there',
      tier: 'fast',
      model: 'smol',
      finish: 'stop',
      decode_tokens_per_second: 41.5,
      time_to_first_token_ms: expect.any(Number),
    });
    expect(chat.messages[1]?.why).toBe('it is a greeting; fast is loaded');
    expect(chat.problem).toBeNull();
  });

  it('carries the conversation so far', async () => {
    const first = await ask('One?');
    first.stream.words('1');
    first.stream.finish('stop', 1);
    await first.done;
    const second = await ask('Two?');
    expect(second.stream.request.body.messages).toEqual([
      { role: 'user', content: 'One?' },
      { role: 'assistant', content: '1' },
      { role: 'user', content: 'Two?' },
    ]);
    second.stream.finish('stop', 1);
    await second.done;
    expect(network.sent('POST', '/tierbar/v1/chats')).toHaveLength(1);
  });

  it('takes many words at once without a paint for each', async () => {
    const frames = vi.spyOn(globalThis, 'requestAnimationFrame');
    const { stream, done } = await ask('Hello?');
    await until(() => chat.live?.tier === 'fast');
    frames.mockClear();
    for (let n = 0; n < 500; n += 1) stream.words('x');
    stream.finish('stop', 1);
    await done;
    expect(shown().at(-1)).toEqual(['assistant', 'x'.repeat(500), 'stop']);
    expect(frames.mock.calls.length).toBeLessThan(100);
  });

  it('says that the tier is loading, and afterwards how much of the wait that was', async () => {
    const { stream, done } = await ask('Hello?');
    stream.write(': loading\n\n');
    await until(() => chat.live?.loading);
    loadMs = 1400;
    stream.words('Hi');
    await until(() => chat.live?.text === 'Hi');
    expect(chat.live?.loading).toBe(false);
    stream.finish('stop', 1);
    await done;
    expect(chat.messages[1]?.loadMs).toBe(1400);
  });

  it('does nothing for a message of blanks, nor while an answer is on its way', async () => {
    await chat.send('  \n ');
    expect(network.requests).toHaveLength(0);
    const { stream, done } = await ask('One?');
    await chat.send('Two?');
    expect(shown()).toEqual([['user', 'One?', null]]);
    stream.finish('stop', 1);
    await done;
  });

  it('keeps an answer of no words, and one that hit the length limit, as such', async () => {
    const empty = await ask('One?');
    empty.stream.finish('stop', 1);
    await empty.done;
    const cut = await ask('Two?');
    cut.stream.words('Once upon');
    cut.stream.finish('length', 1);
    await cut.done;
    expect(kept().filter(([role]) => role === 'assistant')).toEqual([
      ['assistant', '', 'stop'],
      ['assistant', 'Once upon', 'length'],
    ]);
  });
});

describe('stopping', () => {
  it('closes the connection at once and keeps what had been written', async () => {
    const { stream, done } = await ask('Tell me all');
    stream.words('Once');
    await until(() => chat.live?.text === 'Once');
    chat.stop();
    await done;
    expect(stream.closed).toBe(true);
    expect(chat.problem).toBeNull();
    expect(kept()).toEqual([
      ['user', 'Tell me all', null],
      ['assistant', 'Once', 'stopped'],
    ]);
  });

  it('before the first word leaves the question unanswered', async () => {
    const { done } = await ask('Tell me all');
    chat.stop();
    await done;
    expect(chat.busy).toBe(false);
    expect(chat.problem).toBeNull();
    expect(kept()).toEqual([['user', 'Tell me all', null]]);
  });

  it('while the question is being saved asks no model', async () => {
    let stopped = false;
    network.override = ({ path }) => {
      if (path.endsWith('/messages') && !stopped) {
        stopped = true;
        chat.stop();
      }
      return null;
    };
    await chat.send('Never mind');
    expect(network.completions).toHaveLength(0);
    expect(chat.busy).toBe(false);
  });
});

describe('an error', () => {
  it('in place of an answer is shown, and a retry does not save the question twice', async () => {
    network.override = ({ path }) =>
      path === '/v1/chat/completions'
        ? refusal(503, 'over_budget', 'It does not fit.', 'Choose a smaller one.')
        : null;
    await chat.send('Hello?');
    expect(chat.problem).toMatchObject({
      code: 'over_budget',
      message: 'It does not fit.',
      hint: 'Choose a smaller one.',
    });
    expect(chat.busy).toBe(false);
    network.override = () => null;
    const done = chat.answer();
    await until(() => network.completions.length === 1);
    expect(chat.problem).toBeNull();
    network.completions[0]?.words('Hi');
    network.completions[0]?.finish('stop', 1);
    await done;
    expect(kept()).toEqual([
      ['user', 'Hello?', null],
      ['assistant', 'Hi', 'stop'],
    ]);
  });

  it('in the middle of an answer keeps the part that had come', async () => {
    const { stream, done } = await ask('Hello?');
    stream.words('Once');
    stream.data({
      error: {
        message: 'The worker ended (signal 9).',
        code: 'worker_crashed',
        type: 'server_error',
        param: null,
      },
    });
    stream.end();
    await done;
    expect(chat.problem).toMatchObject({ code: 'worker_crashed', message: 'The worker ended (signal 9).' });
    expect(kept().at(-1)).toEqual(['assistant', 'Once', 'error']);
  });

  it.each([
    ['breaks', (stream: Stream) => stream.breakOff()],
    ['ends without its closing mark', (stream: Stream) => stream.end()],
    ['brings something that is not JSON', (stream: Stream) => stream.write('data: {"choices"\n\n')],
  ])('is told when the connection %s', async (_name, happen) => {
    const { stream, done } = await ask('Hello?');
    stream.words('Once');
    await until(() => chat.live?.text === 'Once');
    happen(stream);
    await done;
    expect(chat.problem).not.toBeNull();
    expect(kept().at(-1)).toEqual(['assistant', 'Once', 'error']);
  });

  it('in saving the question asks no model, and a retry saves it', async () => {
    network.override = ({ path }) =>
      path.endsWith('/messages') ? refusal(507, 'storage', 'The disk is full.') : null;
    await chat.send('Hello?');
    expect(chat.problem?.code).toBe('storage');
    expect(network.completions).toHaveLength(0);
    expect(shown()).toEqual([['user', 'Hello?', null]]);
    network.override = () => null;
    const done = chat.answer();
    await until(() => network.completions.length === 1);
    expect(kept()).toEqual([['user', 'Hello?', null]]);
    network.completions[0]?.finish('stop', 1);
    await done;
  });

  it('in saving the answer leaves it on the page, and it is saved with the next message', async () => {
    const { stream, done } = await ask('One?');
    network.override = ({ path }) =>
      path.endsWith('/messages') ? refusal(507, 'storage', 'The disk is full.') : null;
    stream.words('1');
    stream.finish('stop', 1);
    await done;
    expect(chat.problem?.code).toBe('storage');
    expect(shown().at(-1)).toEqual(['assistant', '1', 'stop']);
    network.override = () => null;
    const next = await ask('Two?');
    expect(kept().map(([, content]) => content)).toEqual(['One?', '1', 'Two?']);
    next.stream.finish('stop', 1);
    await next.done;
  });

  it('of a chat that was deleted elsewhere is healed by a retry, which keeps everything in a new one', async () => {
    const first = await ask('One?');
    first.stream.words('1');
    first.stream.finish('stop', 1);
    await first.done;
    network.chats = [];
    await chat.send('Two?');
    expect(chat.problem?.code).toBe('not_found');
    const done = chat.answer();
    await until(() => network.completions.length === 2);
    network.completions[1]?.words('2');
    network.completions[1]?.finish('stop', 1);
    await done;
    expect(kept('c2').map(([, content]) => content)).toEqual(['One?', '1', 'Two?', '2']);
  });
});

describe('answering again', () => {
  it('asks without the old answer, keeps it, and shows the new one', async () => {
    const { stream, done } = await ask('One?');
    stream.words('1');
    stream.finish('stop', 1);
    await done;
    const turn = () => chat.turns[0] as (typeof chat.turns)[0];
    chat.chosen[turn().key] = 0;
    const again = chat.answer();
    await until(() => network.completions.length === 2);
    expect(network.completions[1]?.request.body.messages).toEqual([{ role: 'user', content: 'One?' }]);
    network.completions[1]?.words('uno');
    network.completions[1]?.finish('stop', 1);
    await again;
    expect(turn().answers.map((answer) => answer.content)).toEqual(['1', 'uno']);
    expect(chat.chosen[turn().key]).toBeUndefined();
  });
});

describe('leaving the page', () => {
  it('keeps the part that was written, by a request that outlives the page, once', async () => {
    const { stream, done } = await ask('Tell me all');
    stream.words('Once upon');
    await until(() => chat.live?.text === 'Once upon');
    chat.leave();
    await done;
    await until(() => network.messages('c1').length === 2);
    const saves = network.sent('POST', '/tierbar/v1/chats/c1/messages');
    expect(saves.map((save) => save.keepalive)).toEqual([false, true]);
    expect(kept()).toEqual([
      ['user', 'Tell me all', null],
      ['assistant', 'Once upon', 'stopped'],
    ]);
    expect(stream.closed).toBe(true);
  });

  it('with nothing written sends nothing', async () => {
    const { done } = await ask('Tell me all');
    chat.leave();
    await done;
    chat.leave();
    expect(network.sent('POST', '/tierbar/v1/chats/c1/messages')).toHaveLength(1);
  });
});

import { beforeEach, describe, expect, it, vi } from 'vitest';
import { Api } from '../../lib/http';
import { Network, type RunningTurn, refusal, type Stream, until } from '../../testing/host';
import { Conversation } from './conversation.svelte';
import type { Message } from './turns';

let network: Network;
let chat: Conversation;

beforeEach(() => {
  network = new Network();
  chat = new Conversation({
    api: new Api(async () => ({ url: '', token: 't0' })),
    onSummary: () => {},
  });
});

/** Sends a message and waits until the host has been asked for the answer. */
async function ask(text: string): Promise<{ stream: RunningTurn; done: Promise<void> }> {
  const before = network.turns.length;
  const done = chat.send(text);
  await until(() => network.turns.length > before);
  return { stream: network.turns.at(-1) as RunningTurn, done };
}

const shown = () => chat.messages.map(({ role, content, finish }) => [role, content, finish]);
const stored = (id = 'c1') =>
  network
    .messages(id)
    .map(({ role, parts, finish }) => [
      role,
      parts.map((part) => (part.type === 'text' ? part.text : '')).join(''),
      finish,
    ]);

describe('sending a message', () => {
  it('begins a turn of the host and shows its answer as it comes', async () => {
    chat.model = 'fast';
    const { stream, done } = await ask('Hello?');
    expect(stored()).toEqual([['user', 'Hello?', null]]);
    expect(stream.request.headers.get('authorization')).toBe('Bearer t0');
    expect(stream.request.body).toEqual({ model: 'fast', text: 'Hello?', parent: null });
    stream.words('Hi ');
    stream.words('there');
    await until(() => chat.live?.text === 'Hi there');
    expect(chat.live).toMatchObject({ tier: 'fast', model: 'smol' });
    stream.finish('stop', 41.5);
    await done;
    expect(chat.busy).toBe(false);
    expect(chat.live).toBeNull();
    expect(chat.messages[1]).toMatchObject({
      role: 'assistant',
      content: 'Hi there',
      tier: 'fast',
      model: 'smol',
      why: 'it is a greeting; fast is loaded',
      finish: 'stop',
      decode_tokens_per_second: 41.5,
      time_to_first_token_ms: 7,
    });
    expect(chat.problem).toBeNull();
  });

  it('goes on from the answer that is shown', async () => {
    const first = await ask('One?');
    first.stream.words('1');
    first.stream.finish('stop', 1);
    await first.done;
    const parent = chat.messages[1]?.id;
    const second = await ask('Two?');
    expect(second.stream.request.body).toEqual({ model: 'auto', text: 'Two?', parent });
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

  it('says that the tier is loading, and afterwards where the time went', async () => {
    const { stream, done } = await ask('Hello?');
    stream.loading();
    await until(() => chat.live?.loading);
    stream.words('Hi');
    await until(() => chat.live?.text === 'Hi');
    expect(chat.live?.loading).toBe(false);
    stream.times = { load_ms: 1400, prefill_ms: 20, decode_ms: 300, thinking_ms: null };
    stream.finish('stop', 1);
    await done;
    expect(chat.messages[1]?.times?.load_ms).toBe(1400);
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
    expect(shown().filter(([role]) => role === 'assistant')).toEqual([
      ['assistant', '', 'stop'],
      ['assistant', 'Once upon', 'length'],
    ]);
  });
});

describe('stopping', () => {
  it('ends the turn in the host and keeps what had been written', async () => {
    const { stream, done } = await ask('Tell me all');
    stream.words('Once');
    await until(() => chat.live?.text === 'Once');
    chat.stop();
    await done;
    expect(stream.ended).toBe(true);
    expect(chat.problem).toBeNull();
    expect(shown()).toEqual([
      ['user', 'Tell me all', null],
      ['assistant', 'Once', 'stopped'],
    ]);
    expect(shown()).toEqual(stored());
  });

  it('before the first word leaves the question unanswered', async () => {
    const { done } = await ask('Tell me all');
    chat.stop();
    await done;
    expect(chat.busy).toBe(false);
    expect(chat.problem).toBeNull();
    expect(shown()).toEqual([['user', 'Tell me all', null]]);
  });

  it('while the chat is being made begins no turn', async () => {
    network.override = ({ path }) => {
      if (path.endsWith('/chats')) chat.stop();
      return null;
    };
    await chat.send('Never mind');
    expect(network.turns).toHaveLength(0);
    expect(chat.busy).toBe(false);
  });

  it('while the turn is being begun ends it', async () => {
    network.override = ({ path }) => {
      if (path.endsWith('/turns')) chat.stop();
      return null;
    };
    await chat.send('Never mind');
    expect(network.turns[0]?.ended).toBe(true);
    expect(chat.busy).toBe(false);
  });
});

describe('an error', () => {
  it('in place of an answer is shown, and a retry does not send the question twice', async () => {
    const { stream, done } = await ask('Hello?');
    stream.fail('over_budget', 'It does not fit.', 'Choose a smaller one.');
    await done;
    expect(chat.problem).toMatchObject({
      code: 'over_budget',
      message: 'It does not fit.',
      hint: 'Choose a smaller one.',
    });
    expect(chat.busy).toBe(false);
    const retried = chat.answer();
    await until(() => network.turns.length === 2);
    expect(chat.problem).toBeNull();
    expect(network.turns[1]?.request.body).toEqual({ model: 'auto', parent: chat.messages[0]?.id });
    network.turns[1]?.words('Hi');
    network.turns[1]?.finish('stop', 1);
    await retried;
    expect(stored()).toEqual([
      ['user', 'Hello?', null],
      ['assistant', 'Hi', 'stop'],
    ]);
  });

  it('in the middle of an answer keeps the part that had come', async () => {
    const { stream, done } = await ask('Hello?');
    stream.words('Once');
    stream.fail('worker_crashed', 'the worker of heavy ended', null, { tier: 'heavy' });
    await done;
    expect(chat.problem).toMatchObject({ code: 'worker_crashed', message: 'the worker of Deep ended' });
    expect(shown().at(-1)).toEqual(['assistant', 'Once', 'error']);
  });

  it.each([
    ['breaks', (follower: Stream) => follower.breakOff()],
    ['ends early', (follower: Stream) => follower.end()],
    ['brings something that is not JSON', (follower: Stream) => follower.write('data: {"type"\n\n')],
  ])('of the connection that %s is healed from where it broke', async (_name, happen) => {
    const { stream, done } = await ask('Hello?');
    stream.words('Once');
    await until(() => chat.live?.text === 'Once');
    happen(stream.followers[0] as Stream);
    stream.words(' upon');
    await until(() => chat.live?.text === 'Once upon');
    stream.finish('stop', 1);
    await done;
    expect(chat.problem).toBeNull();
    expect(shown().at(-1)).toEqual(['assistant', 'Once upon', 'stop']);
  });

  it('in sending the question keeps it, and a retry sends it', async () => {
    network.override = ({ path }) =>
      path.endsWith('/turns') ? refusal(507, 'storage', 'The disk is full.') : null;
    await chat.send('Hello?');
    expect(chat.problem?.code).toBe('storage');
    expect(network.turns).toHaveLength(0);
    expect(shown()).toEqual([['user', 'Hello?', null]]);
    network.override = () => null;
    const done = chat.answer();
    await until(() => network.turns.length === 1);
    expect(stored()).toEqual([['user', 'Hello?', null]]);
    network.turns[0]?.finish('stop', 1);
    await done;
  });

  it('by something else that is not found stays in its chat', async () => {
    const first = await ask('One?');
    first.stream.words('1');
    first.stream.finish('stop', 1);
    await first.done;
    network.override = ({ path }) =>
      path.endsWith('/turns') ? refusal(404, 'model_unknown', 'There is no model "big".') : null;
    await chat.send('Two?');
    expect(chat.problem?.code).toBe('model_unknown');
    expect(chat.id).toBe('c1');
    expect(shown().map(([, content]) => content)).toEqual(['One?', '1', 'Two?']);
  });

  it('of a chat that was deleted elsewhere is healed by a retry, which asks in a new one', async () => {
    const first = await ask('One?');
    first.stream.words('1');
    first.stream.finish('stop', 1);
    await first.done;
    network.chats = [];
    await chat.send('Two?');
    expect(chat.problem?.code).toBe('not_found');
    const done = chat.answer();
    await until(() => network.turns.length === 2);
    network.turns[1]?.words('2');
    network.turns[1]?.finish('stop', 1);
    await done;
    expect(network.chats).toHaveLength(1);
    expect(stored(network.chats[0]?.id).map(([, content]) => content)).toEqual(['Two?', '2']);
  });
});

describe('answering again', () => {
  it('adds an answer beside the old one, and either can be shown', async () => {
    const { stream, done } = await ask('One?');
    stream.words('1');
    stream.finish('stop', 1);
    await done;
    const again = chat.answer();
    await until(() => network.turns.length === 2);
    network.turns[1]?.words('uno');
    network.turns[1]?.finish('stop', 1);
    await again;
    const turn = () => chat.turns[0] as (typeof chat.turns)[0];
    expect(turn().answers.map((answer) => answer.content)).toEqual(['1', 'uno']);
    expect(turn().shown?.content).toBe('uno');
    await chat.show(turn().answers[0] as Message);
    expect(turn().shown?.content).toBe('1');
    expect(network.chats[0]?.leaf).toBe(turn().shown?.id);
  });
});

describe('a page that leaves', () => {
  it('follows no longer, and the turn runs on; the next page joins it', async () => {
    const { stream, done } = await ask('Tell me all');
    stream.words('Once upon');
    await until(() => chat.live?.text === 'Once upon');
    chat.leave();
    await done;
    expect(stream.followers).toHaveLength(0);
    expect(stream.ended).toBe(false);
    stream.words(' a time', 500);
    const next = new Conversation({
      api: new Api(async () => ({ url: '' })),
      onSummary: () => {},
    });
    await next.open('c1');
    await until(() => next.live?.text === 'Once upon a time');
    expect(next.live?.tokensPerSecond).toBe(2);
    stream.finish('stop', 1);
    await until(() => !next.busy);
    expect(next.messages.map(({ content }) => content)).toEqual(['Tell me all', 'Once upon a time']);
  });
});

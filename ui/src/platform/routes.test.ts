import { describe, expect, expectTypeOf, it } from 'vitest';
import type { Api } from '../lib/http';
import { address } from './routes';

describe('the address of a route', () => {
  it('escapes parameters and leaves out those without a value', () => {
    const route = '/tierbar/v1/chats/{id}/turns/{turn}/events';
    expect(address(route, { path: { id: 'a/b', turn: 'ü' }, query: { after: 0, before: undefined } })).toBe(
      '/tierbar/v1/chats/a%2Fb/turns/%C3%BC/events?after=0',
    );
    expect(address('/tierbar/v1/models', {})).toBe('/tierbar/v1/models');
  });
});

/** Never called: `npm run check` compiles it, and fails if one of these errors is none. */
export async function whatDoesNotCompile(api: Api) {
  const path = { id: 'c1' };
  // @ts-expect-error: there is no such path.
  await api.get('/tierbar/v1/chat');
  // @ts-expect-error: the path does not have this method.
  await api.put('/tierbar/v1/chats');
  // @ts-expect-error: the path has a parameter.
  await api.get('/tierbar/v1/chats/{id}');
  // @ts-expect-error: its name is another one.
  await api.get('/tierbar/v1/chats/{id}', { path: { chat: 'c1' } });
  // @ts-expect-error: the query needs `q`.
  await api.get('/tierbar/v1/hub/search', { query: {} });
  // @ts-expect-error: the queue has no such state.
  await api.get('/tierbar/v1/queue', { query: { state: 'lost' } });
  // @ts-expect-error: the body needs `reference`.
  await api.post('/tierbar/v1/downloads', { body: { anyway: true } });
  // @ts-expect-error: the body has no such field.
  await api.post('/tierbar/v1/chats/{id}/turns', { path, body: { text: 'Hello', models: 'fast' } });
  // @ts-expect-error: the request has no body.
  await api.post('/tierbar/v1/tiers/{id}/start', { path, body: {} });
  // @ts-expect-error: the answer has no such field.
  (await api.get('/tierbar/v1/chats/{id}', { path })).name;
  // @ts-expect-error: the answer is no event stream.
  await api.stream('get', '/tierbar/v1/chats', { signal: new AbortController().signal });

  expectTypeOf((await api.get('/tierbar/v1/chats')).chats)
    .items.toHaveProperty('title')
    .toBeString();
  expectTypeOf(await api.delete('/tierbar/v1/chats/{id}', { path })).toBeUndefined();
}

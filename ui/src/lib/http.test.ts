import { beforeEach, describe, expect, it, vi } from 'vitest';
import { Network, refusal } from '../testing/host';
import { Api, ApiError } from './http';

let network: Network;
beforeEach(() => {
  network = new Network();
});

const caught = (promise: Promise<unknown>) =>
  promise.then(
    () => null,
    (cause: unknown) => cause as ApiError,
  );

describe('the HTTP client', () => {
  it('sends the connection’s token, or relies on the cookie', async () => {
    await new Api(async () => ({ url: '', token: 't0' })).get('/tierbar/v1/chats');
    await new Api(async () => ({ url: '' })).get('/tierbar/v1/chats');
    expect(network.requests.map((request) => request.headers.get('authorization'))).toEqual([
      'Bearer t0',
      null,
    ]);
  });

  it('passes on the API’s message, hint and code', async () => {
    network.override = () => refusal(400, 'context_exceeded', '5,000 tokens do not fit 4,096', 'Shorten it.');
    const error = await caught(new Api(async () => ({ url: '' })).get('/health'));
    expect(error).toBeInstanceOf(ApiError);
    expect(error).toMatchObject({ code: 'context_exceeded', status: 400, hint: 'Shorten it.' });
    expect(error?.sentences).toBe('5,000 tokens do not fit 4,096. Shorten it.');
  });

  it('reports the status when something other than the API answers', async () => {
    network.override = () => new Response('<h1>Bad gateway</h1>', { status: 502 });
    expect(await caught(new Api(async () => ({ url: '' })).get('/health'))).toMatchObject({
      status: 502,
      message: 'The server returned status 502.',
    });
  });

  it('distinguishes an unreachable server from one that refuses', async () => {
    vi.stubGlobal('fetch', () => Promise.reject(new TypeError('Failed to fetch')));
    expect(await caught(new Api(async () => ({ url: '' })).get('/health'))).toMatchObject({
      code: 'unreachable',
      status: 0,
    });
  });

  it('reports why the app has no address', async () => {
    const api = new Api(() => Promise.reject('the host is starting'));
    expect(await caught(api.get('/health'))).toMatchObject({
      code: 'unreachable',
      message: 'Tierbar is not ready: the host is starting',
    });
  });

  it('reports a missing token, but not a wrong one at sign-in', async () => {
    network.override = () => refusal(401, 'unauthorized', 'This needs the token.');
    const api = new Api(async () => ({ url: '' }));
    const onUnauthorized = vi.fn();
    api.onUnauthorized = onUnauthorized;
    expect(await caught(api.signIn('wrong'))).toMatchObject({ status: 401 });
    expect(onUnauthorized).not.toHaveBeenCalled();
    expect(network.requests[0]).toMatchObject({ method: 'POST', path: '/tierbar/v1/session' });
    expect(network.requests[0]?.headers.get('authorization')).toBe('Bearer wrong');
    await caught(api.get('/tierbar/v1/chats'));
    expect(onUnauthorized).toHaveBeenCalledOnce();
  });

  it('keeps its half of a session and sends it', async () => {
    network.override = () => new Response(null, { status: 204, headers: { 'x-tierbar-session': 'half' } });
    const api = new Api(async () => ({ url: '' }));
    await api.signIn('right');
    network.override = () => Response.json({});
    await api.get('/tierbar/v1/chats');
    expect(network.requests[1]?.headers.get('x-tierbar-session')).toBe('half');
    const app = new Api(async () => ({ url: '', token: 'token' }));
    await app.get('/tierbar/v1/chats');
    expect(network.requests[2]?.headers.get('x-tierbar-session')).toBeNull();
    localStorage.clear();
  });

  it('uses a new address after reconnecting', async () => {
    let port = 1;
    const api = new Api(async () => ({ url: `http://127.0.0.1:${port}` }));
    network.override = () => Response.json({});
    await api.get('/health');
    port = 2;
    await api.get('/v1/models');
    await api.connect();
    await api.get('/tierbar/v1/chains');
    expect(network.requests.map((request) => request.path)).toEqual([
      'http://127.0.0.1:1/health',
      'http://127.0.0.1:1/v1/models',
      'http://127.0.0.1:2/tierbar/v1/chains',
    ]);
  });
});

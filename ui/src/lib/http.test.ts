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
    network.override = () =>
      refusal(400, 'context_length_exceeded', '5,000 tokens do not fit 4,096', 'Shorten it.');
    const error = await caught(new Api(async () => ({ url: '' })).get('/health'));
    expect(error).toBeInstanceOf(ApiError);
    expect(error).toMatchObject({ code: 'context_length_exceeded', status: 400, hint: 'Shorten it.' });
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
    expect(api.hasToken).toBe(false);
    network.override = () => Response.json({});
    await api.get('/tierbar/v1/chats');
    const halves = () => network.requests.map(({ headers }) => headers.get('x-tierbar-session'));
    expect(halves()).toEqual([null, 'half', 'half']);
    const app = new Api(async () => ({ url: '', token: 'token' }));
    await app.get('/tierbar/v1/chats');
    expect(app.hasToken).toBe(true);
    expect(halves()[3]).toBeNull();
    localStorage.clear();
  });

  it('ends its session and forgets its half', async () => {
    localStorage.setItem('x-tierbar-session', 'half');
    const api = new Api(async () => ({ url: '' }));
    const onUnauthorized = vi.fn();
    api.onUnauthorized = onUnauthorized;
    network.override = () => refusal(507, 'storage', 'the disk is full');
    expect(await caught(api.signOut())).toMatchObject({ status: 507 });
    expect(localStorage.getItem('x-tierbar-session')).toBe('half');
    network.override = () => new Response(null, { status: 204 });
    await api.signOut();
    expect(network.sent('DELETE', '/tierbar/v1/session')[1]?.headers.get('x-tierbar-session')).toBe('half');
    expect(localStorage.getItem('x-tierbar-session')).toBeNull();
    expect(onUnauthorized).toHaveBeenCalledOnce();
  });

  it('says that a page which gets no half of a session must be reloaded', async () => {
    network.override = () => new Response(null, { status: 204 });
    const error = await caught(new Api(async () => ({ url: '' })).signIn('right'));
    expect(error?.sentences).toBe(
      'This page does not match the running Tierbar. Reload the page, then sign in again.',
    );
    expect(network.requests).toHaveLength(1);
  });

  it('works with blocked storage, and says so at sign-in', async () => {
    const blocked = () => {
      throw new DOMException('The operation is insecure.', 'SecurityError');
    };
    vi.stubGlobal('localStorage', { getItem: blocked, setItem: blocked, removeItem: blocked });
    network.override = () => new Response(null, { status: 204, headers: { 'x-tierbar-session': 'half' } });
    const api = new Api(async () => ({ url: '' }));
    const error = await caught(api.signIn('right'));
    vi.unstubAllGlobals();
    expect(error?.sentences).toBe(
      'This browser does not let the page store its session. Allow cookies and site data for this address, then sign in again.',
    );
  });

  it('says that a blocked cookie ends the session at once', async () => {
    network.override = ({ method }) =>
      method === 'POST'
        ? new Response(null, { status: 204, headers: { 'x-tierbar-session': 'half' } })
        : refusal(401, 'unauthorized', 'This needs the token.');
    const api = new Api(async () => ({ url: '' }));
    const onUnauthorized = vi.fn();
    api.onUnauthorized = onUnauthorized;
    const error = await caught(api.signIn('right'));
    expect(error?.sentences).toBe(
      'This browser does not keep the cookie of the session. Allow cookies and site data for this address, then sign in again.',
    );
    expect(error?.status).toBe(0);
    expect(onUnauthorized).not.toHaveBeenCalled();
    localStorage.clear();
  });

  it('reads whether a new session would be allowed', async () => {
    const error = { message: 'too old', code: 'forbidden', sign_in_again: true };
    network.override = () => Response.json({ error }, { status: 403 });
    const api = new Api(async () => ({ url: '' }));
    expect(await caught(api.get('/health'))).toMatchObject({ status: 403, signInAgain: true });
    network.override = () => refusal(403, 'forbidden', 'never');
    expect(await caught(api.get('/health'))).toMatchObject({ status: 403, signInAgain: false });
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

import type { Connection } from '../platform';
import {
  type Answer,
  address,
  type Method,
  type Optional,
  type Parts,
  type Path,
  type Request,
  type StreamPath,
} from '../platform/routes';
import { sentence } from './format';

/** The header of a session's half that the page keeps, and its name in localStorage. */
const SESSION = 'x-tierbar-session';

const SIGN_IN = '/tierbar/v1/session';
/** A small answer that needs a session. */
const CHECK = '/tierbar/v1/secrets';
const RELOAD = 'Reload the page, then sign in again.';
const ALLOW = 'Allow cookies and site data for this address, then sign in again.';

/** Where storage is blocked, even reading it throws. */
function storedHalf(): string | null {
  try {
    return localStorage.getItem(SESSION);
  } catch {
    return null;
  }
}

function forgetHalf(): void {
  try {
    localStorage.removeItem(SESSION);
  } catch {
    // There is none.
  }
}

/** An error of the API, or a `ConnectionError`. */
export class ApiError extends Error {
  constructor(
    readonly code: string,
    message: string,
    readonly hint: string | null = null,
    readonly status = 0,
    /** Whether a new session may do what this one may not. */
    readonly signInAgain = false,
    /** The tier that did not answer. */
    readonly tier: string | null = null,
    /** From when on the same request may succeed, in milliseconds since 1970, where a server has said so. */
    readonly retryAtMs: number | null = null,
    /** Whether a trial failed, so that nothing was saved. With `anyway`, it would be. */
    readonly unsaved = false,
    /** The one field of the request that it is about. */
    readonly param: string | null = null,
  ) {
    super(message);
    this.name = 'ApiError';
  }

  /** Message and hint as running text. */
  get sentences(): string {
    return this.hint ? `${sentence(this.message)} ${sentence(this.hint)}` : sentence(this.message);
  }
}

/** Tierbar itself did not answer. The API uses the same code for servers that it calls. */
export class ConnectionError extends ApiError {
  constructor(message: string, hint: string | null = null) {
    super('unreachable', message, hint);
  }
}

/** Returns when these seconds are over, in milliseconds since 1970. */
export function after(seconds: number | null): number | null {
  return seconds === null ? null : Date.now() + seconds * 1000;
}

/** Reads `{"error": {message, code, hint?}}`; `null` if the value is something else. */
export function errorFromBody(body: unknown, status = 0): ApiError | null {
  const error = (body as { error?: unknown } | null)?.error as Record<string, unknown> | null | undefined;
  if (typeof error?.message !== 'string') return null;
  const code = typeof error.code === 'string' ? error.code : 'internal';
  const hint = typeof error.hint === 'string' ? error.hint : null;
  const seconds = typeof error.retry_after_seconds === 'number' ? error.retry_after_seconds : null;
  const { sign_in_again: again, saved } = error;
  return new ApiError(
    code,
    error.message,
    hint,
    status,
    again === true,
    null,
    after(seconds),
    saved === false,
    typeof error.param === 'string' ? error.param : null,
  );
}

/** Converts anything thrown to an error that can be shown. */
export function asApiError(thrown: unknown): ApiError {
  if (thrown instanceof ApiError) return thrown;
  return new ApiError('internal', thrown instanceof Error ? thrown.message : String(thrown));
}

/** An error that a part of a page says itself: that Tierbar does not answer is said once, by the page's banner. */
export function exceptConnection(problem: ApiError | null): ApiError | null {
  return problem instanceof ConnectionError ? null : problem;
}

/**
 * The HTTP client of the host's API. Routes, parameters, bodies and answers have the types of `docs/openapi.json`: what
 * the API does not have does not compile.
 */
export class Api {
  #connect: () => Promise<Connection>;
  #connection: Connection | null = null;
  /** Called when the API requires a token that the page does not have. */
  onUnauthorized: () => void = () => {};

  constructor(connect: () => Promise<Connection>) {
    this.#connect = connect;
  }

  /** Reads the API's address from the platform again; the host may listen on another port. */
  async connect(): Promise<void> {
    try {
      this.#connection = await this.#connect();
    } catch (cause) {
      throw new ConnectionError(`Tierbar is not ready: ${asApiError(cause).message}`);
    }
  }

  get<P extends Path<'get'>>(path: P, ...request: Optional<Request<'get', P>>): Promise<Answer<'get', P>> {
    return this.#json('get', path, request[0]);
  }
  post<P extends Path<'post'>>(
    path: P,
    ...request: Optional<Request<'post', P>>
  ): Promise<Answer<'post', P>> {
    return this.#json('post', path, request[0]);
  }
  patch<P extends Path<'patch'>>(
    path: P,
    ...request: Optional<Request<'patch', P>>
  ): Promise<Answer<'patch', P>> {
    return this.#json('patch', path, request[0]);
  }
  put<P extends Path<'put'>>(
    path: P,
    ...request: Optional<Request<'put', P> & { signal?: AbortSignal }>
  ): Promise<Answer<'put', P>> {
    return this.#json('put', path, request[0]);
  }
  delete<P extends Path<'delete'>>(
    path: P,
    ...request: Optional<Request<'delete', P>>
  ): Promise<Answer<'delete', P>> {
    return this.#json('delete', path, request[0]);
  }

  /** The response of an event stream, its status checked. */
  stream<M extends 'get' | 'post', P extends StreamPath<M>>(
    method: M,
    path: P,
    request: Request<M, P> & { signal: AbortSignal },
  ): Promise<Response> {
    return this.#checked(method, path, request);
  }

  /** Sends a file as it is. */
  upload<P extends Path<'post'>>(
    path: P,
    file: Blob,
    ...request: Optional<Omit<Request<'post', P>, 'body'>>
  ): Promise<Answer<'post', P>> {
    return this.#json('post', path, { ...request[0], body: file });
  }

  /** The body of an answer as a file. */
  async download<P extends Path<'get'>>(path: P, request: Request<'get', P>): Promise<Blob> {
    return (await this.#checked('get', path, request)).blob();
  }

  /** Whether requests have the token itself, as those of the app's windows do. */
  get hasToken(): boolean {
    return this.#connection?.token !== undefined;
  }

  /**
   * Trades the token for a session: a cookie, and a half that only pages of this origin can read. Fails unless the browser
   * keeps and sends both, because every other request would be refused without saying why.
   */
  async signIn(token: string): Promise<void> {
    if (this.#connection === null) await this.connect();
    const url = this.#connection?.url ?? '';
    const response = await this.#checked('post', SIGN_IN, {}, { url, token });
    const half = response.headers.get(SESSION);
    if (half === null)
      throw new ApiError('internal', 'This page does not match the running Tierbar.', RELOAD);
    try {
      localStorage.setItem(SESSION, half);
    } catch {
      throw new ApiError('forbidden', 'This browser does not let the page store its session.', ALLOW);
    }
    try {
      await this.#checked('get', CHECK, {}, { url });
    } catch (cause) {
      if (asApiError(cause).status !== 401) throw cause;
      throw new ApiError('unauthorized', 'This browser does not keep the cookie of the session.', ALLOW);
    }
  }

  /** Ends this browser's session. */
  async signOut(): Promise<void> {
    await this.delete(SIGN_IN);
    forgetHalf();
    this.onUnauthorized();
  }

  async #json<T>(method: Method, path: string, parts?: Parts): Promise<T> {
    const response = await this.#checked(method, path, parts);
    if (response.status === 204) return undefined as T;
    return (await response.json()) as T;
  }

  async #checked(method: Method, path: string, parts: Parts = {}, as?: Connection): Promise<Response> {
    if (this.#connection === null) await this.connect();
    const { url, init } = this.#request(as ?? (this.#connection as Connection), method, path, parts);
    let response: Response;
    try {
      response = await fetch(url, init);
    } catch (cause) {
      if (parts.signal?.aborted) throw cause;
      throw new ConnectionError('Tierbar is not responding.', 'Check that it is running, then try again.');
    }
    if (response.ok) return response;
    const error =
      errorFromBody(await response.json().catch(() => null), response.status) ??
      new ApiError('internal', `The server returned status ${response.status}.`, null, response.status);
    if (response.status === 401 && as === undefined) this.onUnauthorized();
    throw error;
  }

  #request(connection: Connection, method: Method, path: string, parts: Parts) {
    const { body, signal } = parts;
    const headers: Record<string, string> = {};
    const half = storedHalf();
    if (connection.token !== undefined) headers.authorization = `Bearer ${connection.token}`;
    else if (half !== null) headers[SESSION] = half;
    if (body !== undefined) headers['content-type'] = 'application/json';
    const init: RequestInit = { method: method.toUpperCase(), headers, credentials: 'same-origin' };
    if (body !== undefined) init.body = body instanceof Blob ? body : JSON.stringify(body);
    if (signal !== undefined) init.signal = signal;
    return { url: connection.url + address(path, parts), init };
  }
}

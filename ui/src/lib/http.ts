import type { Connection } from '../platform';
import { sentence } from './format';

/** An error of the API, or `unreachable` if there was no answer. */
export class ApiError extends Error {
  constructor(
    readonly code: string,
    message: string,
    readonly hint: string | null = null,
    readonly status = 0,
  ) {
    super(message);
    this.name = 'ApiError';
  }

  /** Message and hint as running text. */
  get sentences(): string {
    return this.hint ? `${sentence(this.message)} ${sentence(this.hint)}` : sentence(this.message);
  }
}

/** Reads `{"error": {message, code, hint?}}`; `null` if the value is something else. */
export function errorFromBody(body: unknown, status = 0): ApiError | null {
  const error = (body as { error?: unknown } | null)?.error as Record<string, unknown> | null | undefined;
  if (typeof error?.message !== 'string') return null;
  const code = typeof error.code === 'string' ? error.code : 'internal';
  return new ApiError(code, error.message, typeof error.hint === 'string' ? error.hint : null, status);
}

/** Converts anything thrown to an error that can be shown. */
export function asApiError(thrown: unknown): ApiError {
  if (thrown instanceof ApiError) return thrown;
  return new ApiError('internal', thrown instanceof Error ? thrown.message : String(thrown));
}

/** The HTTP client of the host's API. */
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
      throw new ApiError('unreachable', `Tierbar is not ready: ${asApiError(cause).message}`);
    }
  }

  get<T>(path: string): Promise<T> {
    return this.#json('GET', path);
  }
  post<T>(path: string, body?: unknown): Promise<T> {
    return this.#json('POST', path, body);
  }
  patch<T>(path: string, body: unknown): Promise<T> {
    return this.#json('PATCH', path, body);
  }
  put<T>(path: string, body: unknown): Promise<T> {
    return this.#json('PUT', path, body);
  }
  delete<T = void>(path: string): Promise<T> {
    return this.#json('DELETE', path);
  }

  /** The response of a stream, its status checked. */
  async stream(path: string, init: { body?: unknown; signal: AbortSignal }): Promise<Response> {
    return await this.#checked(init.body === undefined ? 'GET' : 'POST', path, init.body, {
      signal: init.signal,
    });
  }

  /** Trades the token for the browser's session cookie. */
  async signIn(token: string): Promise<void> {
    if (this.#connection === null) await this.connect();
    const url = this.#connection?.url ?? '';
    await this.#checked('POST', '/tierbar/v1/session', undefined, {}, { url, token });
  }

  async #json<T>(method: string, path: string, body?: unknown): Promise<T> {
    const response = await this.#checked(method, path, body);
    if (response.status === 204) return undefined as T;
    return (await response.json()) as T;
  }

  async #checked(
    method: string,
    path: string,
    body?: unknown,
    extra: RequestInit = {},
    as?: Connection,
  ): Promise<Response> {
    if (this.#connection === null) await this.connect();
    const { url, init } = this.#request(as ?? (this.#connection as Connection), method, path, body);
    let response: Response;
    try {
      response = await fetch(url, { ...init, ...extra });
    } catch (cause) {
      if (extra.signal?.aborted) throw cause;
      throw new ApiError(
        'unreachable',
        'Tierbar is not responding.',
        'Check that it is running, then try again.',
      );
    }
    if (response.ok) return response;
    const error =
      errorFromBody(await response.json().catch(() => null), response.status) ??
      new ApiError('internal', `The server returned status ${response.status}.`, null, response.status);
    if (response.status === 401 && as === undefined) this.onUnauthorized();
    throw error;
  }

  #request(connection: Connection, method: string, path: string, body: unknown) {
    const headers: Record<string, string> = {};
    if (connection.token !== undefined) headers.authorization = `Bearer ${connection.token}`;
    if (body !== undefined) headers['content-type'] = 'application/json';
    const init: RequestInit = { method, headers, credentials: 'same-origin' };
    if (body !== undefined) init.body = JSON.stringify(body);
    return { url: connection.url + path, init };
  }
}

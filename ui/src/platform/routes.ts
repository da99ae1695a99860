import type { paths } from './openapi';

/** The API's routes, as `docs/openapi.json` describes them. */
type Routes = paths;

export type Method = 'get' | 'post' | 'put' | 'patch' | 'delete';

/** The paths that have this method, with their parameters in braces. */
export type Path<M extends Method> = {
  [P in keyof Routes]: Routes[P] extends Record<M, object> ? P : never;
}[keyof Routes];

/** Those of them that answer with an event stream. */
export type StreamPath<M extends Method> = {
  [P in Path<M>]: Operation<M, P> extends {
    responses: { 200: { content: { 'text/event-stream': unknown } } };
  }
    ? P
    : never;
}[Path<M>];

type Operation<M extends Method, P extends keyof Routes> = Routes[P] extends Record<M, infer O> ? O : never;

// biome-ignore lint/complexity/noBannedTypes: a request without parameters needs none of them.
type Nothing = {};

/** A part that the document requires is required here, one that it leaves open is optional, and others are errors. */
type Parameters<O, Name extends 'path' | 'query'> = O extends {
  parameters: Record<Name, infer T extends object>;
}
  ? Record<Name, T>
  : O extends { parameters: { [N in Name]?: infer T } }
    ? [T] extends [undefined]
      ? Nothing
      : { [N in Name]?: Extract<T, object> }
    : Nothing;

type Json<T> = T extends { content: { 'application/json': infer B } } ? B : never;

type Body<O> = O extends { requestBody: infer R }
  ? { body: Json<R> }
  : O extends { requestBody?: infer R }
    ? [R] extends [undefined]
      ? Nothing
      : { body?: Json<NonNullable<R>> }
    : Nothing;

/** What a request to a route carries. */
export type Request<M extends Method, P extends Path<M>> = Parameters<Operation<M, P>, 'path'> &
  Parameters<Operation<M, P>, 'query'> &
  Body<Operation<M, P>>;

/** The last argument of a call: optional where nothing in it is required. */
export type Optional<T> = Nothing extends T ? [T?] : [T];

type Success = 200 | 201 | 202 | 204;

/** The body of a route's answer; `undefined` where it has none. */
export type Answer<M extends Method, P extends Path<M>> =
  Operation<M, P> extends { responses: infer R }
    ? {
        [S in keyof R & Success]: R[S] extends { content: { 'application/json': infer T } } ? T : undefined;
      }[keyof R & Success]
    : never;

/** The parts of any request. */
export interface Parts {
  path?: object;
  query?: object;
  body?: unknown;
  signal?: AbortSignal;
}

/** The address of a route: parameters are filled in and escaped, and those of a query without a value left out. */
export function address(route: string, { path = {}, query = {} }: Parts): string {
  const named = new Map<string, unknown>(Object.entries(path));
  const filled = route.replace(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(String(named.get(name))),
  );
  const pairs = Object.entries(query)
    .filter(([, value]) => value !== undefined && value !== null)
    .map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`);
  return pairs.length === 0 ? filled : `${filled}?${pairs.join('&')}`;
}

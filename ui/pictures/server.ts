import { readFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join, resolve } from 'node:path';
import { Readable } from 'node:stream';
import type { Network } from '../src/testing/host';

const DIST = resolve(import.meta.dirname, '../dist');
const TYPES: Record<string, string> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.mjs': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
};

/** Serves the built page, and what the played host answers. */
export class PlayedServer {
  readonly #server: Server;
  url = '';

  constructor(network: Network) {
    this.#server = createServer(async (request, response) => {
      const { pathname } = new URL(request.url ?? '/', 'http://host');
      if (!pathname.startsWith('/tierbar/') && !pathname.startsWith('/v1/')) {
        const file = join(DIST, pathname === '/' ? 'index.html' : pathname);
        try {
          const body = await readFile(file);
          response.writeHead(200, { 'content-type': TYPES[extname(file)] ?? 'application/octet-stream' });
          response.end(body);
        } catch {
          response.writeHead(404).end();
        }
        return;
      }
      const gone = new AbortController();
      response.on('close', () => gone.abort());
      let body = '';
      for await (const part of request) body += part;
      const answer = await network.answer(request.url ?? '/', {
        method: request.method ?? 'GET',
        headers: Object.entries(request.headers).map(([name, value]): [string, string] => [
          name,
          String(value),
        ]),
        body: body === '' ? null : body,
        signal: gone.signal,
      });
      response.writeHead(answer.status, Object.fromEntries(answer.headers));
      response.flushHeaders();
      if (answer.body === null) response.end();
      else
        Readable.fromWeb(answer.body as Parameters<typeof Readable.fromWeb>[0])
          .on('error', () => response.destroy())
          .pipe(response);
    });
  }

  async start(): Promise<void> {
    await new Promise<void>((ready) => this.#server.listen(0, '127.0.0.1', ready));
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Ends it with all its connections, as when the host is gone. */
  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((closed) => this.#server.close(closed));
  }
}

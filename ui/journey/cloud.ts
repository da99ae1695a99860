import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A cloud on loopback that answers every request with a rate limit. */
export class Cloud {
  url = '';
  /** How many requests it received. */
  requests = 0;
  readonly #server = createServer((request, response) => {
    request.resume();
    this.requests += 1;
    response.writeHead(429, { 'content-type': 'application/json', 'retry-after': '600' });
    response.end(JSON.stringify({ error: { message: 'too many requests', type: 'rate_limit_error' } }));
  });

  async start(): Promise<void> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, 'close');
  }
}

import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A cloud that wants to be left alone, on loopback. */
export class Cloud {
  url = '';
  /** How often it was asked. */
  asked = 0;
  readonly #server = createServer((request, response) => {
    request.resume();
    this.asked += 1;
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

import { type Api, type ApiError, asApiError } from '../../lib/http';
import type { McpServerTest } from '../../platform/openapi';

/** What MCP servers have answered when they were tried out here, by their names. */
export class McpTests {
  results = $state<Record<string, McpServerTest | undefined>>({});
  failures = $state<Record<string, ApiError | undefined>>({});
  running = $state<Record<string, boolean | undefined>>({});
  #api: Api;

  constructor(api: Api) {
    this.#api = api;
  }

  /** Starts or connects to a server and lists its tools. */
  async run(name: string): Promise<void> {
    if (this.running[name]) return;
    this.forget(name);
    this.running[name] = true;
    try {
      this.results[name] = await this.#api.post('/tierbar/v1/mcp-servers/{name}/test', { path: { name } });
    } catch (cause) {
      this.failures[name] = asApiError(cause);
    } finally {
      this.running[name] = false;
    }
  }

  /** Shows what a server has answered when it was saved. */
  keep(test: McpServerTest): void {
    this.forget(test.name);
    this.results[test.name] = test;
  }

  forget(name: string): void {
    this.results[name] = undefined;
    this.failures[name] = undefined;
  }
}

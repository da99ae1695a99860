import { type Api, type ApiError, asApiError } from '../../lib/http';
import type { ClientServer, ClientSettings } from '../../platform/openapi';

/** Owns the settings of other apps as this page sees them. */
export class Connections {
  server = $state.raw<ClientServer | null>(null);
  clients = $state.raw<ClientSettings[]>([]);
  problem = $state.raw<ApiError | null>(null);
  #api: Api;

  constructor(api: Api) {
    this.#api = api;
  }

  async load(): Promise<void> {
    try {
      const { server, clients } = await this.#api.get('/tierbar/v1/connect');
      this.server = server;
      this.clients = clients;
      this.problem = null;
    } catch (cause) {
      this.problem = asApiError(cause);
    }
  }
}

import type {
  BenchReport,
  CatalogModel,
  ChainStatus,
  Chat,
  ChatSummary,
  Config,
  DownloadStatus,
  Entry,
  HubModel,
  HubRepository,
  LibraryModel,
  Status,
  TierStatus,
  TuneReport,
  TurnBegun,
  Verdict,
} from './api';
import type { JobState, JobStatus, Priority } from './openapi';

/** A JSON body, as a route's answer or a request carries it. */
interface Json<T> {
  content: { 'application/json': T };
}
interface Done {
  204: { content?: never };
}
interface Events {
  200: { content: { 'text/event-stream': string } };
}
type Named<Name extends string> = { path: Record<Name, string> };

/** The owner's routes that the page uses and `docs/openapi.json` does not have yet, in the form of `openapi.ts`. */
export interface Undocumented {
  '/tierbar/v1/status': { get: { responses: { 200: Json<Status> } } };
  '/tierbar/v1/events': { get: { responses: Events } };
  '/tierbar/v1/pause': {
    post: { requestBody: Json<{ for?: string }>; responses: { 200: Json<Status> } };
  };
  '/tierbar/v1/resume': { post: { responses: { 200: Json<Status> } } };
  '/tierbar/v1/expect': { post: { requestBody: Json<{ model?: string | null }>; responses: Done } };
  '/tierbar/v1/session': { post: { responses: Done } };
  '/tierbar/v1/log': {
    get: {
      parameters: { query?: { before?: number; limit?: number; tier?: string } };
      responses: { 200: Json<{ entries: Entry[] }> };
    };
  };
  '/tierbar/v1/tiers/{id}/start': {
    post: { parameters: Named<'id'>; responses: { 200: Json<TierStatus> } };
  };
  '/tierbar/v1/tiers/{id}/stop': {
    post: {
      parameters: Named<'id'>;
      requestBody: Json<{ force?: boolean }>;
      responses: { 200: Json<TierStatus> };
    };
  };
  '/tierbar/v1/tiers/{id}/bench': {
    get: { parameters: Named<'id'>; responses: { 200: Json<{ report: BenchReport | null }> } };
    post: { parameters: Named<'id'>; requestBody: Json<object>; responses: Events };
  };
  '/tierbar/v1/tiers/{id}/tune': {
    get: { parameters: Named<'id'>; responses: { 200: Json<{ report: TuneReport | null }> } };
    post: { parameters: Named<'id'>; requestBody: Json<{ dry_run?: boolean }>; responses: Events };
  };
  '/tierbar/v1/models': { get: { responses: { 200: Json<{ models_dir: string; models: LibraryModel[] }> } } };
  '/tierbar/v1/models/fit': {
    get: { parameters: { query: { model: string } }; responses: { 200: Json<Verdict> } };
  };
  '/tierbar/v1/models/import': {
    post: { requestBody: Json<{ path: string }>; responses: { 200: Json<{ models: LibraryModel[] }> } };
  };
  '/tierbar/v1/models/{id}': {
    delete: {
      parameters: Named<'id'> & { query?: { permanently?: boolean } };
      responses: { 200: Json<{ trashed: boolean }> };
    };
  };
  '/tierbar/v1/models/{id}/verify': {
    post: {
      parameters: Named<'id'>;
      responses: { 200: Json<{ sha256: string; expected: string | null; matches: boolean | null }> };
    };
  };
  '/tierbar/v1/catalog': { get: { responses: { 200: Json<{ version: string; models: CatalogModel[] }> } } };
  '/tierbar/v1/hub/search': {
    get: { parameters: { query: { q: string } }; responses: { 200: Json<{ models: HubModel[] }> } };
  };
  '/tierbar/v1/hub/repository': {
    get: { parameters: { query: { id: string } }; responses: { 200: Json<HubRepository> } };
  };
  '/tierbar/v1/downloads': {
    post: {
      requestBody: Json<{ reference: string; anyway?: boolean }>;
      responses: { 200: Json<DownloadStatus>; 201: Json<DownloadStatus> };
    };
  };
  '/tierbar/v1/downloads/{id}': {
    patch: {
      parameters: Named<'id'>;
      requestBody: Json<{ state?: 'paused' | 'queued'; priority?: Priority }>;
      responses: { 200: Json<DownloadStatus> };
    };
    delete: { parameters: Named<'id'>; responses: Done };
  };
  '/tierbar/v1/queue': {
    get: {
      parameters: { query?: { state?: JobState; limit?: number } };
      responses: {
        200: Json<{ counts: Partial<Record<JobState, number>>; bytes: number; jobs: JobStatus[] }>;
      };
    };
  };
  '/tierbar/v1/secrets': {
    get: {
      responses: {
        200: Json<{
          secrets: { name: string; source: 'keychain' | 'file' | 'environment' | 'hugging_face' | null }[];
        }>;
      };
    };
  };
  '/tierbar/v1/secrets/{name}': {
    put: { parameters: Named<'name'>; requestBody: Json<{ value: string }>; responses: Done };
    delete: { parameters: Named<'name'>; responses: Done };
  };
  '/tierbar/v1/config': {
    get: { responses: { 200: Json<{ path: string; config: Config }> } };
    patch: {
      requestBody: Json<{ [key: string]: unknown }>;
      responses: { 200: Json<{ path: string; config: Config }> };
    };
  };
  '/tierbar/v1/chains': { get: { responses: { 200: Json<{ chains: ChainStatus[] }> } } };
  '/tierbar/v1/chats': {
    get: { responses: { 200: Json<{ chats: ChatSummary[] }> } };
    post: { requestBody: Json<{ model?: string; title?: string }>; responses: { 201: Json<ChatSummary> } };
  };
  '/tierbar/v1/chats/{id}': {
    get: { parameters: Named<'id'>; responses: { 200: Json<Chat> } };
    patch: {
      parameters: Named<'id'>;
      requestBody: Json<{ model?: string; title?: string; leaf?: number | null }>;
      responses: { 200: Json<ChatSummary> };
    };
    delete: { parameters: Named<'id'>; responses: Done };
  };
  '/tierbar/v1/chats/{id}/turns': {
    post: {
      parameters: Named<'id'>;
      requestBody: Json<{ text?: string; model?: string; parent?: number | null }>;
      responses: { 201: Json<TurnBegun> };
    };
  };
  '/tierbar/v1/chats/{id}/turns/{turn}': {
    delete: { parameters: Named<'id' | 'turn'>; responses: Done };
  };
  '/tierbar/v1/chats/{id}/turns/{turn}/events': {
    get: { parameters: Named<'id' | 'turn'> & { query?: { after?: number } }; responses: Events };
  };
}

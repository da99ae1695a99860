import { type Api, ApiError, ConnectionError } from '../../lib/http';
import { readSse } from '../../lib/sse';
import type { Entry, Status, TierStatus } from '../../platform/openapi';
import { mergeStatus, readEntry } from './merge';

/** `lost`: the last connection ended or failed, and the feed is reconnecting. */
export type Link = 'connecting' | 'live' | 'lost' | 'locked';

const FIRST_RETRY_MS = 500;
const LAST_RETRY_MS = 8000;

/** Owns the host's status as this page sees it, fed by `/tierbar/v1/events` for as long as it runs. */
export class Feed {
  status = $state.raw<Status | null>(null);
  link = $state<Link>('connecting');
  /** Why the link is lost. */
  problem = $state<string | null>(null);
  /** Whether the host has another version than the one that this page came from. */
  outdated = $state(false);
  /** Called after a lost link is live again. */
  onHealed: () => void = () => {};
  /** Called with each entry of the event log. */
  onEntry: (entry: Entry) => void = () => {};
  /** Called when chats have changed, or may have: with each connection. */
  onChats: () => void = () => {};

  #api: Api;
  #stop: AbortController | null = null;
  #wake: () => void = () => {};
  #version: string | null = null;

  constructor(api: Api) {
    this.#api = api;
  }

  tier(id: string | null): TierStatus | undefined {
    return this.status?.tiers.find((tier) => tier.id === id);
  }

  start(): void {
    this.#stop?.abort();
    const stop = new AbortController();
    this.#stop = stop;
    if (this.link === 'locked') this.link = 'connecting';
    void this.#run(stop.signal);
  }

  stop(): void {
    this.#stop?.abort();
  }

  /** Skips the wait before the next attempt, as when the user returns to the window. */
  retryNow(): void {
    this.#wake();
  }

  /** Stops after a call was refused without a token; `start` resumes once there is one. */
  lock(): void {
    this.link = 'locked';
    this.#stop?.abort();
  }

  async #run(signal: AbortSignal): Promise<void> {
    let wait = FIRST_RETRY_MS;
    while (!signal.aborted) {
      try {
        await this.#api.connect();
        const response = await this.#api.stream('get', '/tierbar/v1/events', { signal });
        if (response.body === null) throw new ConnectionError('The event stream is empty.');
        for await (const item of readSse(response.body)) {
          if ('comment' in item) continue;
          if (item.event === 'log') {
            const entry = readEntry(item.data);
            if (entry) this.onEntry(entry);
            continue;
          }
          if (item.event === 'chats' || item.event === 'snapshot') this.onChats();
          this.status = mergeStatus(this.status, item.event, item.data);
          if (this.status === null) continue;
          this.#version ??= this.status.version;
          this.outdated = this.#version !== this.status.version;
          this.#live();
          wait = FIRST_RETRY_MS;
        }
        this.#lost(signal, 'Tierbar closed the connection.');
      } catch (cause) {
        this.#lost(signal, cause instanceof ApiError ? cause.sentences : 'Tierbar closed the connection.');
      }
      if (signal.aborted) return;
      await this.#pause(wait, signal);
      wait = Math.min(wait * 2, LAST_RETRY_MS);
    }
  }

  #live(): void {
    const healed = this.link === 'lost';
    this.link = 'live';
    this.problem = null;
    if (healed) this.onHealed();
  }

  #lost(signal: AbortSignal, problem: string): void {
    if (signal.aborted) return;
    this.link = 'lost';
    this.problem = problem;
  }

  #pause(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        signal.removeEventListener('abort', done);
        this.#wake = () => {};
        resolve();
      };
      const timer = setTimeout(done, ms);
      signal.addEventListener('abort', done);
      this.#wake = done;
    });
  }
}

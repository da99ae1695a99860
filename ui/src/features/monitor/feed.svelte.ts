import { type Api, ApiError, ConnectionError } from '../../lib/http';
import { readSse } from '../../lib/sse';
import type { Entry, Status, TierStatus } from '../../platform/openapi';
import { mergeStatus, readEntry } from './merge';
import { isMinorChange } from './minor';

/** `lost`: the last connection ended or failed, and the feed is reconnecting. */
export type Link = 'connecting' | 'live' | 'lost' | 'locked';

const FIRST_RETRY_MS = 500;
const LAST_RETRY_MS = 8000;
/** How often the page is drawn for readings that have hardly changed. */
const MINOR_EVERY_MS = 10_000;

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
  /** The status with readings that are not drawn yet. */
  #latest: Status | null = null;
  #drawnAt = Number.NEGATIVE_INFINITY;
  #due: ReturnType<typeof setTimeout> | undefined;

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
    clearTimeout(this.#due);
  }

  /** Draws the latest readings and skips the wait before the next attempt, as when the user returns to the window. */
  retryNow(): void {
    this.#draw();
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
          const latest = mergeStatus(this.#latest, item.event, item.data);
          this.#latest = latest;
          if (latest === null) continue;
          if (this.status && item.event === 'change' && isMinorChange(this.status, latest)) this.#drawLater();
          else this.#draw();
          this.#version ??= latest.version;
          this.outdated = this.#version !== latest.version;
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

  #draw(): void {
    clearTimeout(this.#due);
    this.#due = undefined;
    if (this.#latest === null || this.status === this.#latest) return;
    this.status = this.#latest;
    this.#drawnAt = performance.now();
  }

  /** Draws once what comes within seconds; nothing while the page cannot be seen. */
  #drawLater(): void {
    if (document.hidden || this.#due !== undefined) return;
    this.#due = setTimeout(() => this.#draw(), this.#drawnAt + MINOR_EVERY_MS - performance.now());
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

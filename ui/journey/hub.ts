import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { END_MS, PROGRAMS } from './host';

export const REPOSITORY = 'tierbar-tests/tiny-GGUF';
/** Requires accepting a license: refused without a token. */
export const GATED = 'tierbar-tests/gated-GGUF';

/** A stand-in for the model hub, on loopback. */
export class Hub {
  url = '';
  token = '';
  #process: ChildProcess | null = null;

  /** `rate`: bytes per second of all its answers together. A second start takes the address of the first. */
  async start(rate: number): Promise<void> {
    const program = join(PROGRAMS, 'hub_stand_in');
    if (!existsSync(program)) throw new Error(`${program} is missing: run \`make build\`.`);
    const port = this.url === '' ? '0' : new URL(this.url).port;
    const child = spawn(program, ['--port', port, '--rate', String(rate)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    this.#process = child;
    const lines = createInterface({ input: child.stdout as Readable });
    const [line] = (await Promise.race([once(lines, 'line'), once(child, 'exit')])) as [unknown];
    if (typeof line !== 'string') throw new Error(`hub_stand_in ended with ${line}.`);
    const ready = JSON.parse(line) as { url: string; token: string };
    this.url = ready.url;
    this.token = ready.token;
  }

  async stop(): Promise<void> {
    const child = this.#process;
    this.#process = null;
    if (child === null || child.exitCode !== null) return;
    const exit = once(child, 'exit', { signal: AbortSignal.timeout(END_MS) });
    child.kill('SIGTERM');
    await exit;
  }
}

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants, copyFileSync, existsSync, linkSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { open, readdir, readFile, writeFile } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import type { Status, TierStatus } from '../src/platform/openapi';

export const STARTER = 'SmolLM2-135M-Instruct.Q4_1.gguf';
const MODELS = process.env.TIERBAR_TEST_MODELS || join(homedir(), '.cache/tierbar/models');
export const PROGRAMS = resolve(
  process.env.TIERBAR_BIN_DIR || join(import.meta.dirname, '../../target/tests/release'),
);
/** A limit against hanging. */
export const END_MS = 60_000;

/** A real `tierbar serve` with a data folder of its own. */
export class Host {
  readonly home = mkdtempSync(join(tmpdir(), 'tierbar-journey-'));
  url = '';
  token = '';
  #process: ChildProcess | null = null;

  /** Additional environment variables. */
  readonly #env: Record<string, string>;

  constructor(env: Record<string, string> = {}) {
    // A home of its own, so that it does not see the models of other apps, the Trash and the keys of the user who runs the tests.
    this.#env = { HOME: this.home, HF_TOKEN: '', HF_HOME: join(this.home, 'huggingface'), ...env };
    mkdirSync(join(this.home, 'models'));
  }

  get configFile(): string {
    return join(this.home, 'config.toml');
  }

  get logFile(): string {
    return join(this.home, 'host.log');
  }

  model(name: string): string {
    return join(this.home, 'models', name);
  }

  /** Puts the starter model into the models folder. */
  addModel(name = STARTER): void {
    this.#place(this.model(name));
  }

  /** Puts the starter model into another folder. */
  addModelTo(folder: string): void {
    mkdirSync(folder, { recursive: true });
    this.#place(join(folder, STARTER));
  }

  #place(path: string): void {
    const starter = join(MODELS, STARTER);
    if (!existsSync(starter)) throw new Error(`The model ${starter} is missing: run \`make setup\`.`);
    rmSync(path, { force: true });
    try {
      linkSync(starter, path);
    } catch {
      // Another file system.
      copyFileSync(starter, path, constants.COPYFILE_FICLONE);
    }
  }

  /** Returns all files in the models folder, hidden ones included. */
  async modelFiles(): Promise<string[]> {
    return await readdir(join(this.home, 'models'));
  }

  /** Puts the first `bytes` of the starter model into the models folder, as an interrupted download leaves it. */
  async addPartOfModel(name: string, bytes: number): Promise<void> {
    const file = await open(join(MODELS, STARTER));
    const { buffer } = await file.read(Buffer.alloc(bytes), 0, bytes, 0);
    await file.close();
    await writeFile(this.model(name), buffer);
  }

  async configure(toml: string): Promise<void> {
    await writeFile(this.configFile, toml);
  }

  async config(): Promise<string> {
    return await readFile(this.configFile, 'utf8');
  }

  /** Resolves once the API listens. A second start takes the address of the first. */
  async start(): Promise<void> {
    const program = join(PROGRAMS, 'tierbar');
    if (!existsSync(program)) throw new Error(`${program} is missing: run \`make build\`.`);
    const log = await open(this.logFile, 'a');
    const listen = this.url === '' ? '127.0.0.1:0' : new URL(this.url).host;
    const child = spawn(program, ['serve', '--json', '--listen', listen], {
      // The memory of a 16 GB Mac, so that exactly one model can be loaded at a time.
      env: { ...process.env, TIERBAR_HOME: this.home, TIERBAR_SIMULATE_RAM: '16GiB', ...this.#env },
      stdio: ['ignore', 'pipe', log.fd],
    });
    this.#process = child;
    await log.close();
    const lines = createInterface({ input: child.stdout as Readable });
    const [line] = (await Promise.race([once(lines, 'line'), once(child, 'exit')])) as [unknown];
    if (typeof line !== 'string')
      throw new Error(`tierbar serve ended with ${line}: ${await readFile(this.logFile, 'utf8')}`);
    const ready = JSON.parse(line) as { url: string; token_file: string };
    this.url = ready.url;
    this.token = (await readFile(ready.token_file, 'utf8')).trim();
  }

  /** Ends the host as a user does. Fails if the host does not end cleanly or leaves workers behind. */
  async stop(): Promise<void> {
    const child = this.#process;
    if (child === null) return;
    this.#process = null;
    if (child.exitCode !== null || child.signalCode !== null)
      throw new Error(`The host ended by itself: ${child.exitCode ?? child.signalCode}`);
    const exit = once(child, 'exit') as Promise<[number | null, string | null]>;
    const hangs = setTimeout(() => child.kill('SIGKILL'), END_MS);
    const workers = await this.#workers().catch((error) => {
      child.kill('SIGKILL');
      throw error;
    });
    child.kill('SIGTERM');
    const [code, signal] = await exit;
    clearTimeout(hangs);
    if (code !== 0) throw new Error(`The host ended with ${code ?? signal}.`);
    const left = workers.filter(lives);
    if (left.length > 0) throw new Error(`The host left workers behind: ${left}`);
  }

  /** Ends what still runs and deletes the data folder. */
  async remove(): Promise<void> {
    try {
      await this.stop();
    } finally {
      rmSync(this.home, { recursive: true, force: true });
    }
  }

  async #workers(): Promise<number[]> {
    return (await this.status()).tiers.flatMap(({ pid }) => (pid === null ? [] : [pid]));
  }

  async status(): Promise<Status> {
    const response = await fetch(`${this.url}/tierbar/v1/status`, {
      headers: { Authorization: `Bearer ${this.token}` },
    });
    if (!response.ok) throw new Error(`status: ${response.status} ${await response.text()}`);
    return (await response.json()) as Status;
  }

  /** Which tier answers depends on what is loaded: typing a message loads one. */
  async busy(): Promise<TierStatus[]> {
    return (await this.status()).tiers.filter(({ state }) => state === 'busy');
  }

  async tier(id: string): Promise<TierStatus> {
    const tier = (await this.status()).tiers.find((tier) => tier.id === id);
    if (tier === undefined) throw new Error(`There is no tier ${id}.`);
    return tier;
  }
}

function lives(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

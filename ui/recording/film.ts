import { spawnSync } from 'node:child_process';
import { mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CDPSession, Page } from '@playwright/test';

/** The shortest time that a picture is shown. */
const FRAME_MS = 110;
/** Longer, nothing happens. */
const LONGEST_MS = 4000;

/** What a page shows, picture by picture, with the pointer and a caption above. */
export class Film {
  readonly #page: Page;
  readonly #folder: string;
  #session!: CDPSession;
  readonly #frames: { file: string; at: number }[] = [];
  #cutting = false;

  constructor(page: Page, folder: string) {
    this.#page = page;
    this.#folder = folder;
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
  }

  async start(): Promise<void> {
    this.#session = await this.#page.context().newCDPSession(this.#page);
    this.#session.on('Page.screencastFrame', ({ data, metadata, sessionId }) => {
      void this.#session.send('Page.screencastFrameAck', { sessionId }).catch(() => {});
      if (this.#cutting) return;
      const at = (metadata.timestamp ?? 0) * 1000;
      const last = this.#frames.at(-1);
      // Of pictures in quick succession, the last is shown.
      if (last && this.#frames.length > 1 && at - (this.#frames.at(-2)?.at ?? 0) < FRAME_MS)
        this.#frames.pop();
      const file = join(this.#folder, `${String(this.#frames.length).padStart(5, '0')}.png`);
      writeFileSync(file, data, 'base64');
      this.#frames.push({ file, at });
    });
    await this.#session.send('Page.startScreencast', { format: 'png', everyNthFrame: 2 });
  }

  /** Leaves out what is shown meanwhile, such as a page that loads. */
  async cut(act: () => Promise<unknown>): Promise<void> {
    this.#cutting = true;
    await act();
    this.#cutting = false;
    const last = this.#frames.at(-1);
    const at = Date.now();
    // The time in between does not pass.
    if (last) for (const frame of this.#frames) frame.at += at - last.at - FRAME_MS;
  }

  /** Writes an animated WebP; returns how long it plays, in seconds. */
  async end(path: string): Promise<number> {
    await this.#session.send('Page.stopScreencast');
    const shown = this.#frames.map(({ file, at }, index) => {
      const next = this.#frames[index + 1]?.at ?? at + LONGEST_MS;
      return { file, ms: Math.round(Math.min(Math.max(next - at, FRAME_MS), LONGEST_MS)) };
    });
    const options = ['-loop', '0', '-mixed', '-kmin', '15', '-kmax', '30'];
    const frames = shown.flatMap(({ file, ms }) => ['-lossy', '-q', '80', '-m', '4', '-d', `${ms}`, file]);
    const list = join(this.#folder, 'frames.txt');
    writeFileSync(list, [...options, ...frames, '-o', path].join('\n'));
    const { status, stderr, error } = spawnSync('img2webp', [list], { encoding: 'utf8' });
    if (status !== 0) throw new Error(`img2webp: ${error?.message ?? stderr}`);
    rmSync(this.#folder, { recursive: true });
    const seconds = shown.reduce((sum, { ms }) => sum + ms, 0) / 1000;
    console.log(`${path}: ${seconds.toFixed(0)} s, ${shown.length} pictures, ${statSync(path).size} bytes`);
    return seconds;
  }
}

/** Shows the pointer and a caption on every page of this tab. Not a part of the app. */
export async function showPointer(page: Page): Promise<void> {
  await page.addInitScript(() => {
    addEventListener('DOMContentLoaded', () => {
      const above = document.createElement('div');
      above.setAttribute('aria-hidden', 'true');
      Object.assign(above.style, {
        position: 'fixed',
        inset: '0',
        width: '100%',
        height: '100%',
        margin: '0',
        padding: '0',
        border: '0',
        background: 'none',
        overflow: 'hidden',
        pointerEvents: 'none',
        zIndex: '9999',
      });
      const pointer = document.createElement('div');
      Object.assign(pointer.style, {
        position: 'absolute',
        width: '18px',
        height: '18px',
        margin: '-9px',
        borderRadius: '50%',
        background: 'rgb(28 117 103 / 45%)',
        boxShadow: '0 0 0 2px #fff',
      });
      const caption = document.createElement('div');
      caption.id = 'caption';
      Object.assign(caption.style, {
        position: 'absolute',
        top: '11px',
        right: '14px',
        padding: '6px 14px',
        borderRadius: '9px',
        background: 'rgb(20 24 22 / 88%)',
        color: '#fff',
        font: '600 14px/1.3 var(--font)',
      });
      const kept = (name: string) => sessionStorage.getItem(name) ?? '';
      caption.textContent = kept('caption');
      caption.hidden = caption.textContent === '';
      const put = (x: number, y: number) => Object.assign(pointer.style, { left: `${x}px`, top: `${y}px` });
      put(Number(kept('x')), Number(kept('y')));
      above.append(pointer, caption);
      document.documentElement.append(above);
      addEventListener(
        'mousemove',
        ({ clientX, clientY }) => {
          sessionStorage.setItem('x', `${clientX}`);
          sessionStorage.setItem('y', `${clientY}`);
          put(clientX, clientY);
        },
        { capture: true },
      );
    });
  });
}

export async function caption(page: Page, text: string): Promise<void> {
  await page.evaluate((text) => {
    sessionStorage.setItem('caption', text);
    const shown = document.querySelector<HTMLElement>('#caption');
    if (shown === null) return;
    shown.textContent = text;
    shown.hidden = false;
  }, text);
}

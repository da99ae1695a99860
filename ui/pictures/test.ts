import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test as base, expect, type Page } from '@playwright/test';
import axe from 'axe-core';
import type { Status } from '../src/platform/openapi';
import type { Network } from '../src/testing/host';
import { furnished, NOW, status } from './scene';
import { PlayedServer } from './server';

interface Look {
  network: Network;
  server: PlayedServer;
  /** Opens a page of a host of this status. */
  open: (path?: string, now?: Status) => Promise<void>;
}

/** Pictures are of Debian's letters: those of other systems differ in each. */
const OTHER_LETTERS =
  process.platform !== 'linux'
    ? 'they are taken on Linux'
    : existsSync('/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf')
      ? null
      : 'the package fonts-dejavu-core is missing';

export const test = base.extend<Look>({
  // biome-ignore lint/correctness/noEmptyPattern: Playwright reads the fixtures from the pattern.
  network: async ({}, use) => {
    await use(furnished());
  },
  server: async ({ network }, use) => {
    const server = new PlayedServer(network);
    await server.start();
    await use(server);
    await server.stop();
  },
  open: async ({ page, network, server }, use) => {
    await page.clock.setFixedTime(NOW);
    const trouble: string[] = [];
    page.on('pageerror', (error) => trouble.push(`${error.stack}`));
    await use(async (path = '/', now = status()) => {
      const streams = network.eventStreams.length;
      await page.goto(server.url + path);
      await expect.poll(() => network.eventStreams.length).toBeGreaterThan(streams);
      network.eventStreams.at(-1)?.event('snapshot', now);
    });
    expect(trouble).toEqual([]);
  },
});

const ACCEPT = 'looks like its picture; if the change is meant, accept it with `make snapshots`';
const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];

const TAKEN_WITH = join(import.meta.dirname, 'states/chromium.txt');

/** How far a picture may differ: next to not at all, unless another version of Chromium draws it. */
function tolerance(page: Page) {
  const version = page.context().browser()?.version().split('.')[0] ?? '';
  const accepting = test.info().config.updateSnapshots !== 'none';
  if (accepting) writeFileSync(TAKEN_WITH, `${version}\n`);
  const same = accepting || readFileSync(TAKEN_WITH, 'utf8').trim() === version;
  const differing = same
    ? { threshold: 0.1, maxDiffPixels: 100 }
    : { threshold: 0.2, maxDiffPixelRatio: 0.02 };
  return { ...differing, animations: 'disabled', caret: 'hide', scale: 'css' } as const;
}

/** Checks what is shown by axe in light and dark, with more contrast too, and compares it with its pictures. */
export async function look(page: Page, name: string): Promise<void> {
  await page.evaluate(axe.source);
  for (const scheme of ['light', 'dark'] as const) {
    await page.emulateMedia({
      colorScheme: scheme,
      contrast: 'no-preference',
      reducedMotion: 'no-preference',
    });
    if (OTHER_LETTERS === null)
      await expect.soft(page, ACCEPT).toHaveScreenshot(`${name}-${scheme}.png`, tolerance(page));
    else console.log(`SKIPPED comparison: ${OTHER_LETTERS}`);
    await obeys(page, `${name}, ${scheme}`, scheme === 'light' ? RULES : ['color-contrast']);
    await page.emulateMedia({ contrast: 'more', reducedMotion: 'reduce' });
    await obeys(page, `${name}, ${scheme}, more contrast`, ['color-contrast']);
  }
}

/** Expects no violation of these of axe's rules, or of all with these tags. */
async function obeys(page: Page, state: string, rules: string[]): Promise<void> {
  const found = await page.evaluate(async (values) => {
    type Axe = typeof import('axe-core');
    const { axe } = window as unknown as { axe: Axe };
    const type = values.length === 1 ? 'rule' : 'tag';
    const { violations } = await axe.run(document, {
      runOnly: { type, values },
      ...(type === 'tag' && { rules: { 'target-size': { enabled: true } } }),
      resultTypes: ['violations'],
    });
    return violations.flatMap(({ id, nodes }) =>
      nodes.map((node) => `${id}: ${node.target} ${node.failureSummary}`),
    );
  }, rules);
  expect.soft(found, state).toEqual([]);
}

export { expect };

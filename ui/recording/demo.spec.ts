import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, type Locator, type Page, test } from '@playwright/test';
import { Host, STARTER } from '../journey/host';
import { answers, CONFIG, SHORT, signIn } from '../journey/test';
import { caption, Film, showPointer } from './film';
import { readings } from './readings';

/** Under another name, the starter model is not offered as a demo beside larger ones. */
const MODEL = 'Small-SmolLM2-135M.gguf';
const QUESTION = 'Explain in two sentences what a black hole is.';
/** When memory runs short, in seconds after the host's start. */
const SHORT_AFTER = 58;

async function click(page: Page, locator: Locator) {
  const box = await locator.boundingBox();
  if (box) await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2, { steps: 18 });
  await locator.click();
}

const pause = (page: Page, seconds: number) => page.waitForTimeout(Math.max(seconds, 0) * 1000);

test('a minute with Tierbar', async ({ page }, info) => {
  const script = join(mkdtempSync(join(tmpdir(), 'tierbar-recording-')), 'readings.jsonl');
  writeFileSync(script, readings(SHORT_AFTER));
  const host = new Host({ TIERBAR_SCRIPTED_READINGS: script });
  try {
    host.addModel(MODEL);
    await host.configure(CONFIG.replaceAll(STARTER, MODEL));
    await host.start();
    const started = Date.now();
    await signIn(page, host);
    await answers(page, SHORT);
    await showPointer(page);
    await page.goto(`${host.url}/settings.html#models`);
    await expect(page.getByTestId('offer').first()).toBeVisible();
    await caption(page, 'Before a download: will it fit?');
    const film = new Film(page, info.outputPath('frames'));
    await film.start();

    await page.mouse.move(640, 420, { steps: 12 });
    const offer = page.locator('[data-testid=offer][data-name="Qwen3.5 35B-A3B"]');
    await offer.evaluate((row) => row.scrollIntoView({ block: 'center', behavior: 'smooth' }));
    await pause(page, 1.5);
    await click(page, offer.locator('a.row-title'));
    await expect(page.getByTestId('model-page')).toBeVisible();
    await pause(page, 1.5);
    await caption(page, 'Its memory, line by line');
    await page
      .getByTestId('fit-details')
      .evaluate((part) => part.scrollIntoView({ block: 'center', behavior: 'smooth' }));
    await pause(page, 4);

    await film.cut(async () => {
      await page.goto(host.url);
      await expect(page.getByTestId('strip-ram')).toBeVisible();
      await caption(page, 'A private chat');
    });
    await click(page, page.getByTestId('tier-picker'));
    await pause(page, 1);
    await click(page, page.getByTestId('tier-option-fast'));
    await click(page, page.getByTestId('composer'));
    await page.getByTestId('composer').pressSequentially(QUESTION, { delay: 35 });
    await caption(page, 'Memory, swap and speed stay in view');
    await page.keyboard.press('Enter');
    await expect(page.getByTestId('regenerate')).toBeVisible();
    await pause(page, 1.5);
    await caption(page, 'What a loaded model uses, part by part');
    await click(page, page.getByTestId('strip-ram'));
    await pause(page, 4);
    await page.keyboard.press('Escape');

    await caption(page, 'Everything by keyboard');
    await page.keyboard.press('Control+k');
    await page.getByTestId('palette-input').pressSequentially('load pri', { delay: 110 });
    await pause(page, 1.2);
    await page.keyboard.press('Enter');
    await caption(page, 'One model at a time is in memory');
    await expect(page.getByTestId('strip-tier')).toHaveText('Everyday, Ready');
    await pause(page, 1.5);

    await film.cut(async () => {
      await page.goto(`${host.url}/settings.html#monitor`);
      await expect(page.getByTestId('chart-memory').locator('canvas')).toBeVisible();
      await caption(page, 'Memory, swap and speed over time');
    });
    await page.mouse.move(760, 600, { steps: 12 });
    await pause(page, SHORT_AFTER + 2 - (Date.now() - started) / 1000);
    await caption(page, 'Other apps need memory: swap grows');
    const unload = page.getByTestId('log').locator('[data-kind=unload]', { hasText: 'swap' });
    await expect(unload.first()).toBeAttached();
    await caption(page, 'Tierbar unloads the model, and says why');
    await page
      .getByTestId('log')
      .evaluate((part) => part.closest('section')?.scrollIntoView({ block: 'start', behavior: 'smooth' }));
    await pause(page, 5);

    await film.end(join(import.meta.dirname, '../../docs/images/demo.webp'));
    await host.stop();
  } finally {
    await host.remove();
  }
});

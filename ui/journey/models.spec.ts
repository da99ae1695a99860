import { createHash } from 'node:crypto';
import { createReadStream, existsSync } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { Page } from '@playwright/test';
import { type Host, STARTER } from './host';
import { GATED, Hub, REPOSITORY } from './hub';
import { answers, ask, test as base, expect, SHORT, signIn } from './test';

/** So slow that the test sees a download of 98 MB before its end, even on a machine that stalls for seconds. */
const RATE = 5_000_000;
const UNLIMITED = 0;
const ID = STARTER.replace('.gguf', '');
/** As published. */
const SHA256 = 'b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53';

const test = base.extend<{ hub: Hub; models: Page }>({
  // biome-ignore lint/correctness/noEmptyPattern: Playwright reads the names of what a fixture needs from it.
  hub: async ({}, use) => {
    const hub = new Hub();
    await hub.start(RATE);
    await use(hub);
    await hub.stop();
  },
  env: async ({ hub }, use) => {
    await use({ HF_ENDPOINT: hub.url });
  },
  furnished: false,
  /** The models page of a host that has no model yet. */
  models: async ({ host, page }, use) => {
    await signIn(page, host);
    await page.goto(`${host.url}/settings.html#models`);
    await use(page);
  },
});

async function find(page: Page, text: string) {
  await page.getByTestId('find').fill(text);
  await page.getByTestId('find-submit').click();
}

async function get(page: Page, name: string) {
  await page.locator(`[data-testid=offer][data-name="${name}"]`).getByTestId('offer-get').click();
}

async function speedUp(hub: Hub): Promise<void> {
  await hub.stop();
  await hub.start(UNLIMITED);
}

async function received(host: Host): Promise<number> {
  return (await host.status()).downloads[0]?.received_bytes ?? 0;
}

async function sha256(file: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(file), hash);
  return hash.digest('hex');
}

test('a model is found, downloaded, verified, used and removed', async ({ models, host, hub }) => {
  await expect(models.getByTestId('library-empty')).toBeVisible();
  await find(models, 'tiny');
  await models.getByTestId('hub-result').filter({ hasText: REPOSITORY }).click();
  const offer = models.locator(`[data-testid=offer][data-name="${REPOSITORY}"]`);
  const smaller = offer.locator('option', { hasText: 'Q4_1' });
  await offer.getByTestId('offer-quant').selectOption((await smaller.getAttribute('value')) as string);
  await offer.getByTestId('fit-chip').click();
  await expect(offer.getByTestId('fit-details')).toContainText(/Budget for models, of 16 GB/);
  await offer.getByTestId('offer-get').click();

  const download = models.getByTestId('download');
  await expect(download).toHaveAttribute('data-state', 'downloading');
  await expect(download.getByTestId('download-text')).toContainText(/MB of 98 MB · .*MB\/s/);
  await expect.poll(() => received(host)).toBeGreaterThan(0);
  await download.getByTestId('download-pause').click();
  await expect(download).toHaveAttribute('data-state', 'paused');
  const bar = models.getByRole('progressbar', { name: `Download of ${ID}` });
  await expect(bar).toHaveAttribute('aria-valuenow', /^[1-9]\d?$/);
  const before = await received(host);
  expect(existsSync(host.model(STARTER))).toBe(false);
  await speedUp(hub);
  await download.getByTestId('download-resume').click();
  await expect(download).toHaveAttribute('data-state', 'done');
  expect(before).toBeGreaterThan(0);
  expect(await sha256(host.model(STARTER))).toBe(SHA256);

  const row = models.locator(`[data-testid=local-model][data-model="${ID}"]`);
  await expect(row).toContainText('98 MB');
  await row.getByTestId('model-more').click();
  await models.getByTestId('model-verify').click();
  await expect(row.getByTestId('model-outcome')).toContainText('Verified');
  await row.getByTestId('model-use').click();
  await models.getByTestId('use-fast').click();
  await expect(row.locator('.tier')).toHaveText('Fast');

  const opened = models.waitForEvent('popup');
  await models.getByTestId('open-chat').click();
  const chat = await opened;
  await answers(chat, SHORT);
  await ask(chat, 'Say hello.');
  await expect(chat.getByTestId('answer-stats')).toContainText(ID);

  await row.getByTestId('model-more').click();
  await expect(models.getByTestId('model-remove')).toContainText('Loaded in Fast. Unload it first.');
  await models.keyboard.press('Escape');
  await chat.getByTestId('tier-picker').click();
  await chat.getByTestId('tier-stop-fast').click();
  await expect(chat.getByTestId('tier-option-fast')).toContainText('Not loaded');
  await row.getByTestId('model-more').click();
  await models.getByTestId('model-remove').click();
  await models.getByTestId('confirm').click();
  await expect(row).toHaveCount(0);
  expect(existsSync(host.model(STARTER))).toBe(false);
});

test('a download continues after a restart of its host, on both pages', async ({
  models,
  host,
  hub,
  complaints,
}) => {
  complaints.expect(/ERR_CONNECTION_REFUSED/);
  await find(models, `${REPOSITORY}:Q4_1`);
  await get(models, `${REPOSITORY}:Q4_1`);
  const opened = models.waitForEvent('popup');
  await models.getByTestId('open-chat').click();
  const chat = await opened;
  await answers(chat, SHORT);
  await expect(chat.getByTestId('strip-download')).toContainText(/\d+ %/);
  await expect.poll(() => received(host)).toBeGreaterThan(10_000_000);
  await host.stop();
  for (const page of [models, chat])
    await expect(page.getByTestId('connection-banner')).toContainText('Tierbar is not responding.');
  await speedUp(hub);
  await host.start();
  await expect(models.getByTestId('connection-banner')).toBeHidden();
  expect(await received(host), 'what had arrived before').toBeGreaterThan(10_000_000);
  await expect(models.getByTestId('download')).toHaveAttribute('data-state', 'done');
  await expect(chat.getByTestId('strip-download')).toBeHidden();
  await expect(chat.getByTestId('welcome-use')).toHaveText('Try the Demo Model');
  expect(await sha256(host.model(STARTER))).toBe(SHA256);
  await chat.getByTestId('welcome-use').click();
  await expect(chat.getByTestId('welcome-use')).toHaveCount(0);
  await ask(chat, 'Say hello.');
  await expect(chat.getByTestId('answer-stats')).toContainText(ID);
});

test('a canceled download leaves no file', async ({ models, host }) => {
  await find(models, `${REPOSITORY}:Q4_1`);
  await get(models, `${REPOSITORY}:Q4_1`);
  await expect.poll(() => received(host)).toBeGreaterThan(0);
  await models.getByTestId('download-cancel').click();
  await models.getByTestId('confirm').click();
  await expect(models.getByTestId('download')).toHaveCount(0);
  // Its row goes at once, its part when that is written no more.
  await expect.poll(() => host.modelFiles()).toEqual([]);
});

test('a gated repository needs the token from the settings', async ({ models, hub, host, complaints }) => {
  complaints.expect(/status of 403.*\/downloads/);
  const offer = models.locator(`[data-testid=offer][data-name="${GATED}"]`);
  await find(models, GATED);
  await expect(offer).toContainText('Fit unknown');
  await offer.getByTestId('offer-get').click();
  await expect(offer.getByTestId('error-banner')).toHaveAttribute('data-code', 'access_denied');
  await models.getByTestId('settings-nav-general').click();
  await models.getByTestId('settings-hf-token').fill(hub.token);
  await models.getByTestId('settings-hf-token-save').click();
  await expect(models.getByTestId('settings-hf-token-remove')).toBeVisible();
  expect(await models.content()).not.toContain(hub.token);
  expect(await host.config()).not.toContain(hub.token);
  await models.getByTestId('settings-nav-models').click();
  await find(models, GATED);
  await expect(offer).toContainText('Fits');
  await offer.getByTestId('offer-get').click();
  await expect(models.getByTestId('download')).toHaveAttribute('data-state', 'downloading');
});

test('without a network the catalog still shows what fits', async ({ models, hub, complaints }) => {
  complaints.expect(/status of 502.*\/hub\/search/);
  complaints.expect(/status of 502.*\/catalog\/refresh/);
  await hub.stop();
  await find(models, 'tiny');
  await expect(models.getByTestId('error-banner')).toHaveAttribute('data-code', 'unreachable');
  const heavy = models.locator('[data-testid=offer]').filter({ hasText: 'Qwen3.5' }).first();
  await expect(heavy.getByTestId('fit-chip')).toBeVisible();
  await heavy.getByTestId('fit-chip').click();
  await expect(heavy.getByTestId('fit-details')).toContainText('Largest context');
  await heavy.getByTestId('offer-page-link').click();
  await expect(models.getByTestId('published').getByRole('link').first()).toHaveAttribute('href', /^https:/);
  await models.getByTestId('model-back').click();
  await expect(heavy.getByTestId('offer-page-link')).toBeFocused();
  await models.getByTestId('catalog-refresh').click();
  const outcome = models.getByTestId('catalog-outcome').getByTestId('error-banner');
  await expect(outcome).toHaveAttribute('data-code', 'unreachable');
});

test('an added folder is used in place', async ({ models, host }) => {
  const folder = join(host.home, 'elsewhere');
  host.addModelTo(folder);
  await models.getByTestId('add-folder-path').fill(folder);
  await models.getByTestId('add-folder').click();
  await expect(models.getByTestId('add-folder-outcome')).toContainText('1 model found.');
  const row = models.locator(`[data-testid=local-model][data-model="${ID}"]`);
  await expect(row).toContainText('Folder');
  await row.getByTestId('model-more').click();
  await expect(models.getByTestId('model-remove')).toContainText('a folder that you added');
  expect(await host.config()).toContain(folder);
  expect(await host.modelFiles()).toEqual([]);
});

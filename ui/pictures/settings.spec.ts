import { download } from '../src/testing/models';
import { status, WITHOUT_MODELS } from './scene';
import { expect, look, test } from './test';

const TALL = { width: 980, height: 1500 };

test('General', async ({ page, open }) => {
  await page.setViewportSize(TALL);
  await open('/settings.html#general');
  await expect(page.locator('.card').nth(3)).toBeVisible();
  await look(page, 'general');
});

test('Models', async ({ page, open }) => {
  await page.setViewportSize({ width: 980, height: 1700 });
  await open(
    '/settings.html#models',
    status({
      downloads: [
        download('Qwen3.5-35B-A3B', { total_bytes: 11_391_613_568, received_bytes: 4_100_000_000 }),
        download('DeepSeek-R1', {
          state: 'failed',
          reason: 'its SHA-256 differs from the published one; download it again',
        }),
      ],
    }),
  );
  await expect(page.getByTestId('offer').first()).toBeVisible();
  await look(page, 'models');
  await page.setViewportSize({ width: 390, height: 844 });
  await look(page, 'models-phone');
});

test('Documents', async ({ page, open }) => {
  await open('/settings.html#documents');
  await expect(page.getByTestId('document-source')).toHaveCount(2);
  await look(page, 'documents');
});

test('a store for saved contexts', async ({ page, open }) => {
  await page.setViewportSize(TALL);
  await open('/settings.html#models');
  await page.getByTestId('context-store').click();
  await expect(page.getByTestId('context-store-dialog')).toBeVisible();
  await look(page, 'contexts-store');
});

test('a model to download, with its quants', async ({ page, open }) => {
  await page.setViewportSize(TALL);
  await open('/settings.html#models/qwen3.5%2035b-a3b');
  await expect(page.getByTestId('model-page')).toBeVisible();
  await page.getByTestId('model-details').locator('summary').click();
  await look(page, 'model');
});

test('an installed model that cannot chat', async ({ page, open }) => {
  await open('/settings.html#models/all-MiniLM-L6-v2-Q8_0');
  await expect(page.getByText('Not a chat model').first()).toBeVisible();
  await look(page, 'model-embedding');
});

test('a model that is searched', async ({ page, open }) => {
  await open('/settings.html#models');
  // What comes later would move the rest.
  await expect(page.getByText('s3://ada-contexts')).toBeVisible();
  await page.getByTestId('find').fill('coder');
  await page.getByTestId('find-submit').click();
  const last = page.getByTestId('hub-result').last();
  await expect(last).toBeVisible();
  await last.evaluate((element) => element.scrollIntoView({ block: 'end' }));
  await look(page, 'find');
});

test('Tiers', async ({ page, open }) => {
  await page.setViewportSize({ width: 980, height: 1800 });
  await open('/settings.html#tiers');
  await page.getByTestId('settings-tier-fast-advanced').locator('summary').click();
  await look(page, 'tiers');
});

test('Cloud', async ({ page, open }) => {
  await page.setViewportSize(TALL);
  await open('/settings.html#servers');
  await page.getByTestId('server-provider').selectOption('openai');
  await expect(page.getByTestId('server-model')).toBeVisible();
  await look(page, 'cloud');
});

test('Connect', async ({ page, open }) => {
  await page.setViewportSize({ width: 980, height: 1000 });
  await open('/settings.html#connect');
  await expect(page.getByTestId('connect-app').first()).toBeVisible();
  await look(page, 'connect');
});

test('Access', async ({ page, open }) => {
  await page.setViewportSize({ width: 980, height: 1100 });
  await open('/settings.html#access');
  await page.getByTestId('key-name').fill('phone');
  await page.getByTestId('key-create').click();
  await expect(page.getByTestId('key-secret')).toBeVisible();
  await look(page, 'access');
  await page.getByTestId('settings-network').click();
  await expect(page.getByTestId('confirm')).toBeVisible();
  await look(page, 'access-confirm');
});

test('Monitor', async ({ page, open }) => {
  await page.setViewportSize({ width: 980, height: 2860 });
  await open('/settings.html#monitor');
  await expect(page.getByTestId('chart-memory').locator('canvas')).toBeVisible();
  await expect(page.getByText('unloaded', { exact: false }).first()).toBeVisible();
  await look(page, 'monitor');
  await page.setViewportSize({ width: 390, height: 844 });
  await look(page, 'monitor-phone');
});

test('settings of a host that does not answer', async ({ page, open, network }) => {
  network.override = () =>
    Response.json(
      { error: { message: 'the database is locked', code: 'internal', type: 'x', param: null } },
      { status: 500 },
    );
  network.override = (
    (other) => (request) =>
      request.path.endsWith('/events') ? null : other(request)
  )(network.override);
  await open('/settings.html#general', WITHOUT_MODELS);
  await expect(page.getByTestId('error-banner')).toBeVisible();
  await look(page, 'settings-problem');
});

test('the popover', async ({ page, open }) => {
  await page.setViewportSize({ width: 340, height: 520 });
  await open('/popover.html');
  await expect(page.getByTestId('popover-tier-primary')).toBeVisible();
  await look(page, 'popover');
  await open('/popover.html', WITHOUT_MODELS);
  await expect(page.getByTestId('popover-question')).toBeDisabled();
  await look(page, 'popover-without-models');
});

test('a browser that is not signed in', async ({ page, network, server }) => {
  network.override = () =>
    Response.json(
      { error: { message: 'a token is needed', code: 'unauthorized', type: 'x', param: null } },
      { status: 401 },
    );
  await page.goto(server.url);
  await page.getByTestId('token-input').fill('wrong');
  await look(page, 'sign-in');
  await page.getByTestId('token-submit').click();
  await expect(page.getByTestId('token-error')).toBeVisible();
  await look(page, 'sign-in-refused');
});

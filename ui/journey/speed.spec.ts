import type { Page } from '@playwright/test';
import { END_MS } from './host';
import { CONFIG, expect, signIn, test } from './test';

test.skip(process.env.RUN_SLOW_TESTS !== '1', 'slow');

/** Makes measurements as small as possible on their way to the host. */
async function small(page: Page, kind: 'bench' | 'tune', more: object): Promise<void> {
  await page.route(`**/tiers/fast/${kind}`, async (route) => {
    const request = route.request();
    if (request.method() !== 'POST') return route.continue();
    const body = request.postDataJSON() as Record<string, unknown>;
    await route.continue({ postData: { ...body, prompt_tokens: 32, answer_tokens: 4, ...more } });
  });
}

test('a tier is measured and tuned without changing the configuration', async ({ page, host }) => {
  test.slow();
  await signIn(page, host);
  await page.goto(`${host.url}/settings.html#tiers`);
  const tier = (what: string) => page.getByTestId(`settings-tier-fast-${what}`);

  await small(page, 'bench', { depths: [0, 4096] });
  await tier('measure').click();
  await expect(tier('bench')).toBeVisible({ timeout: END_MS });
  await expect(page.getByText(/Prefill [\d.]+ tok\/s, decode [\d.]+ tok\/s/)).toBeVisible();
  await tier('bench').locator('summary').click();
  await expect(tier('bench')).toContainText('Needs a context of 4132 tokens, and the tier has 2048.');

  await small(page, 'tune', { depth: 0, threads: [], batch: [64], gpu_layers: [] });
  await tier('tune').click();
  await expect(tier('tuned')).toBeVisible({ timeout: 2 * END_MS });
  const open = tier('tuned').getByRole('row');
  if (!(await open.first().isVisible())) await tier('tuned').locator('summary').click();
  await expect(tier('tuned')).toContainText('automatic threads, batch 64, f16');
  await expect(tier('tuned')).toContainText('As configured.');
  expect(await host.config()).toBe(CONFIG);

  // Results survive a reload. A canceled measurement frees the tier.
  await page.reload();
  await expect(tier('bench')).toBeVisible();
  await expect(tier('tuned')).toBeVisible();
  await page.unroute('**/tiers/fast/bench');
  await small(page, 'bench', { depths: [0], answer_tokens: 1500, runs: 50 });
  await tier('measure').click();
  await expect(tier('progress')).toContainText('Depth 0');
  await expect(page.getByTestId('settings-tier-primary-measure')).toBeDisabled();
  await tier('measure-cancel').click();
  await expect(tier('measure')).toBeEnabled();
  await expect.poll(async () => (await host.tier('fast')).state).toBe('ready');
  await expect(tier('speed-error')).toHaveCount(0);
});

import { AxeBuilder } from '@axe-core/playwright';
import type { Page } from '@playwright/test';
import { expect, test } from './test';

const ANSWER = `Here is **one** way, as in [the manual](https://example.com/):

\`\`\`python
def double(n):  # twice
    return n * 2 if n else "nothing"
\`\`\`

1. A list with \`code\` in it
2. ![a picture from elsewhere](https://example.com/p.png) <img src="https://example.com/q.png" onerror="alert(1)">

| a | b |
|---|---|
| 1 | 2 |

\\[ x = \\frac{-b}{2a} \\]

> A quotation. <script>alert(2)</script>
`;

for (const scheme of ['light', 'dark'] as const) {
  test(`every page is legible in ${scheme} mode`, async ({ chat, host }) => {
    await chat.emulateMedia({ colorScheme: scheme, reducedMotion: 'reduce' });
    await expect(chat.getByTestId('strip-ram')).toBeVisible();
    await expectLegible(chat, scheme);

    const kept = await chat.request.post(`${host.url}/tierbar/v1/chats`, { data: { model: 'fast' } });
    const { id } = await kept.json();
    for (const message of [
      { role: 'user', content: 'How do I double a number?' },
      { role: 'assistant', content: ANSWER, tier: 'fast', model: 'SmolLM2', finish: 'error' },
    ]) {
      const answer = await chat.request.post(`${host.url}/tierbar/v1/chats/${id}/messages`, {
        data: message,
      });
      expect(answer.status()).toBe(201);
    }
    await chat.reload();
    await chat.getByRole('button', { name: 'How do I double a number?', exact: true }).click();
    await expect(chat.locator('pre code .hljs-keyword').first()).toHaveText('def');
    await expect(chat.locator('.markdown img, .markdown script')).toHaveCount(0);
    await expect(chat.getByTestId('message-assistant').getByRole('table')).toBeVisible();
    await expect(chat.locator('.formula mfrac')).toBeVisible();
    await expectLegible(chat, scheme);
    await chat.getByTestId('tier-picker').click();
    await expectLegible(chat, scheme);
    await chat.getByTestId('tier-start-fast').click();
    await expect(chat.getByTestId('strip-tier')).toHaveText('Fast, Ready');
    await chat.getByTestId('strip-ram').click();
    await expect(chat.getByTestId('plan-fast')).toBeVisible();
    await expectLegible(chat, scheme);

    await chat.goto(`${host.url}/settings.html`);
    for (const section of ['general', 'models', 'tiers', 'connect', 'monitor']) {
      await chat.getByTestId(`settings-nav-${section}`).click();
      await expect(chat.locator('.card').first()).toBeVisible();
      await expectLegible(chat, scheme);
    }
  });
}

/** Checks the rules of WCAG that a program can check: contrast, names, roles. */
async function expectLegible(page: Page, scheme: 'light' | 'dark') {
  const background = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const [red = 0] = (background.match(/\d+/g) ?? []).map(Number);
  expect(red > 128, background).toBe(scheme === 'light');
  const { violations } = await new AxeBuilder({ page }).withTags(['wcag2a', 'wcag2aa', 'wcag21aa']).analyze();
  const found = violations.flatMap(({ id, nodes }) =>
    nodes.map((node) => `${id}: ${node.target} ${node.failureSummary}`),
  );
  expect(found).toEqual([]);
}

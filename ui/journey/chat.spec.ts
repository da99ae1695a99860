import { answers, ask, ENDLESS, expect, signIn, test } from './test';

test('a chat streams its answer, is kept with a title, renamed and deleted', async ({ chat, host }) => {
  await chat.evaluate(() => {
    const seen = new Set<number>();
    Object.assign(window, { seen });
    new MutationObserver(() => {
      const text = document.querySelector('[data-testid=message-assistant] .markdown')?.textContent ?? '';
      if (document.querySelector('[data-testid=stop]')) seen.add(text.length);
    }).observe(document.body, { subtree: true, childList: true, characterData: true });
  });
  await expect(chat.getByTestId('strip-tier')).toContainText('no model loaded');
  await expect(chat.getByTestId('strip-speed')).toContainText('–');

  await ask(chat, 'Why is the sky blue? Answer in one sentence.');
  await expect(chat.getByTestId('message-user')).toHaveText(/Why is the sky blue/);
  await expect(chat.getByTestId('answer-stats')).toContainText('tok/s');
  await expect(chat.getByTestId('send')).toBeVisible();
  const answer = chat.getByTestId('message-assistant');
  const whole = (await answer.locator('.markdown').innerText()).length;
  const seen = await chat.evaluate(() => [...(window as unknown as { seen: Set<number> }).seen]);
  expect(
    seen.some((length) => length > 0 && length < whole),
    `a part of the answer was shown: ${seen} of ${whole}`,
  ).toBe(true);

  await expect(answer.getByTestId('answer-ending')).toBeHidden();
  await expect(answer.getByTestId('answer-stats')).toHaveText(
    /^Fast\s*SmolLM2-135M-Instruct\.Q4_1\s*[\d.]+ tok\/s\s*[\d.]+ m?s to first token/,
  );
  // The router says why: one sentence is a matter for the fast tier.
  await expect(answer.getByTestId('answer-stats').getByText('Fast')).toHaveAttribute('title', /\w/);
  await expect(chat.getByTestId('strip-ram')).toHaveText(/^RAM\s+[\d.]+ [MG]B of 16 GB$/);
  await expect(chat.getByTestId('strip-swap')).toHaveText(/^Swap\s+[\d.]+ [KMG]?B/);
  await expect(chat.getByTestId('strip-speed')).toHaveText(/^Speed\s+[\d.]+ tok\/s$/);
  await expect(chat.getByTestId('strip-tier')).toHaveText(/^Fast, Ready$/);

  const item = chat.getByTestId('chat-item');
  await expect(item).toHaveText('Why is the sky blue? Answer in one sentence.');
  const words = await answer.locator('.markdown').innerText();
  await chat.reload();
  // The chat that was open is open again.
  await expect(answer.locator('.markdown')).toHaveText(words, { useInnerText: true });
  await expect(answer.getByTestId('answer-stats')).toContainText('tok/s');

  await item.hover();
  await item.getByTestId('chat-menu').click();
  await item.getByTestId('chat-rename').click();
  await chat.getByTestId('chat-title-input').fill('Numbers');
  await chat.getByTestId('chat-title-input').press('Enter');
  await expect(item).toHaveText('Numbers');
  await chat.reload();
  await expect(item).toHaveText('Numbers');

  await item.hover();
  await item.getByTestId('chat-menu').click();
  await item.getByTestId('chat-delete').click();
  await expect(item).toHaveCount(0);
  await chat.getByTestId('undo').click();
  await expect(item).toHaveText('Numbers');
  await chat.getByTestId('search').fill('numb');
  await expect(item).toContainText('Numbers');
  await chat.getByTestId('search').fill('');
  await item.getByRole('button', { name: 'Numbers' }).first().press('Delete');
  await expect(item).toHaveCount(0);
  await chat.reload();
  await expect(chat.getByText('Your chats appear here. They stay on this computer.')).toBeVisible();
  expect((await host.tier('fast')).state).toBe('ready');
});

test('a stopped answer is kept so far, and frees its tier', async ({ chat, host }) => {
  await answers(chat, ENDLESS);
  await ask(chat, 'Tell me about the sea.');
  const words = chat.getByTestId('message-assistant').last().locator('.markdown');
  await expect(words).toHaveText(/\w+ \w+/);
  expect(await host.busy()).toHaveLength(1);

  await chat.getByTestId('stop').click();
  await expect(chat.getByTestId('answer-ending')).toHaveText('Stopped. The answer so far is kept.');
  await expect(chat.getByTestId('composer')).toBeFocused();
  await expect.poll(() => host.busy()).toEqual([]);
  await expect(chat.getByTestId('error-banner')).toBeHidden();
  const kept = await words.innerText();

  await chat.getByTestId('regenerate').click();
  await chat.getByTestId('regenerate-again').click();
  await expect(chat.getByTestId('stop')).toBeVisible();
  await expect(words).toHaveText(/\w+ \w+/);
  await chat.getByTestId('stop').click();
  await chat.getByRole('button', { name: 'Previous answer' }).click();
  await expect(words).toHaveText(kept, { useInnerText: true });

  // From then on both are kept.
  await expect(chat.getByTestId('send')).toBeVisible();
  await chat.reload();
  await chat.getByRole('button', { name: 'Tell me about the sea.', exact: true }).click();
  await expect(chat.getByTestId('answer-ending')).toHaveText('Stopped. The answer so far is kept.');
  // The answer that was shown last is the one that is shown.
  await expect(chat.getByLabel('Answer 1 of 2')).toBeVisible();
});

test('an answer goes on while its page is reloaded, and another window follows it', async ({
  chat,
  host,
  context,
}) => {
  await answers(chat, ENDLESS);
  await ask(chat, 'Tell me about the sea.');
  const words = chat.getByTestId('message-assistant').locator('.markdown');
  await expect(words).toHaveText(/\w+ \w+/);
  const before = (await words.innerText()).length;

  await chat.reload();
  await chat.getByRole('button', { name: /^Tell me about the sea\./ }).click();
  await expect.poll(async () => (await words.innerText()).length).toBeGreaterThan(before);
  expect(await host.busy()).toHaveLength(1);

  const other = await context.newPage();
  await other.goto(host.url);
  await other.getByRole('button', { name: /^Tell me about the sea\./ }).click();
  const there = other.getByTestId('message-assistant').locator('.markdown');
  await expect.poll(async () => (await there.innerText()).length).toBeGreaterThan(before);

  // A stop in one window is the end in both.
  await other.getByTestId('stop').click();
  for (const page of [chat, other])
    await expect(page.getByTestId('answer-ending')).toHaveText('Stopped. The answer so far is kept.');
  expect(await there.innerText()).toBe(await words.innerText());
  await expect.poll(() => host.busy()).toEqual([]);
  await other.close();
});

test('a closed window loses nothing', async ({ chat, host, context }) => {
  await ask(chat, 'Count to three.');
  await expect(chat.getByTestId('stop')).toBeVisible();
  const id = await chat.getByTestId('chat-item').getAttribute('data-chat-id');
  const stored = async () => (await context.request.get(`${host.url}/tierbar/v1/chats/${id}`)).json();
  await chat.close();
  await expect.poll(async () => (await stored()).turn).toBeNull();
  const { messages } = await stored();
  expect(messages).toHaveLength(2);
  expect(messages[1].parts[0].text).toMatch(/\w+/);
  expect(['stop', 'length']).toContain(messages[1].finish);
});

test('a chat works with the keyboard alone', async ({ page, host }) => {
  await answers(page, ENDLESS);
  await signIn(page, host);
  await page.goto(host.url);
  const composer = page.getByTestId('composer');
  await expect(composer).toBeFocused();

  // Away to the chats, and back again.
  await page.keyboard.press('Shift+Tab');
  await expect(composer).not.toBeFocused();
  await page.keyboard.press('Tab');
  await expect(composer).toBeFocused();

  await page.keyboard.type('Tell me');
  await page.keyboard.press('Shift+Enter');
  await page.keyboard.type('about the sea.');
  await page.keyboard.press('Enter');
  await expect(page.getByTestId('message-user').locator('.bubble')).toHaveText('Tell me\nabout the sea.');
  await expect(page.getByTestId('message-assistant').locator('.markdown')).toHaveText(/\w+ \w+/);
  await page.keyboard.press('Escape');
  await expect(page.getByTestId('answer-ending')).toHaveText('Stopped. The answer so far is kept.');

  await expect(page.getByTestId('send')).toBeVisible();
  await page.keyboard.type('Go on.');
  await page.keyboard.press('Enter');
  await expect(page.getByTestId('message-assistant').nth(1).locator('.markdown')).toHaveText(/\w+ \w+/);
  await page.keyboard.press('Tab');
  await expect(page.getByTestId('stop')).toBeFocused();
  await page.keyboard.press('Enter');
  await expect(page.getByTestId('answer-ending')).toHaveCount(2);
  await expect(composer).toBeFocused();

  await page.keyboard.press('ControlOrMeta+n');
  await expect(page.getByTestId('empty-state')).toBeVisible();
  await expect(composer).toBeFocused();
});

import { answers, ask, CONFIG, ENDLESS, expect, SHORT, test } from './test';

test('a broken model shows an error with a hint, and works once repaired', async ({ chat, host }) => {
  await host.addPartOfModel('broken.gguf', 1 << 20);
  await host.configure(`${CONFIG}
[tiers.heavy]
model = "broken.gguf"

[tiers.absent]
model = "nowhere.gguf"
`);
  await chat.getByTestId('tier-picker').click();
  await chat.getByTestId('tier-option-heavy').click();
  await ask(chat, 'Say hello.');
  const problem = chat.getByTestId('error-banner');
  await expect(problem).toContainText(/broken/);
  await expect(problem.locator('.hint')).not.toBeEmpty();
  await expect(chat.getByTestId('message-user')).toHaveText(/Say hello/);

  host.addModel('broken.gguf');
  await problem.getByTestId('retry').click();
  await expect(chat.getByTestId('answer-stats')).toContainText('Deep');
  await expect(problem).toBeHidden();
  await expect(chat.getByTestId('message-user')).toHaveCount(1);

  await chat.getByTestId('tier-picker').click();
  await chat.getByTestId('tier-option-absent').click();
  await ask(chat, 'And you?');
  await expect(problem).toContainText(/nowhere/);
  await expect(problem.locator('.hint')).not.toBeEmpty();
});

test('a killed worker leaves its partial answer, and the next question works', async ({ chat, host }) => {
  await answers(chat, ENDLESS);
  await ask(chat, 'Tell me about the sea.');
  const words = chat.getByTestId('message-assistant').first().locator('.markdown');
  await expect(words).toHaveText(/\w+ \w+/);
  const [tier] = await host.busy();
  process.kill(tier?.pid as number, 'SIGKILL');

  await expect(chat.getByTestId('error-banner')).toContainText('Interrupted. The answer so far is kept.');
  await expect(chat.getByTestId('error-banner')).toHaveAttribute('data-code', 'worker_crashed');
  await expect(words).toHaveText(/\w+ \w+/);

  await answers(chat, SHORT);
  await ask(chat, 'Say hello.');
  await expect(chat.getByTestId('message-assistant')).toHaveCount(2);
  await expect(chat.getByTestId('answer-stats')).toHaveCount(2);
  await expect(chat.getByTestId('error-banner')).toBeHidden();
  await expect(chat.getByTestId('answer-ending').first()).toHaveText(
    /^Interrupted\. The answer so far is kept\. \w/,
  );
  expect((await host.status()).tiers.map(({ pid }) => pid)).not.toContain(tier?.pid);
});

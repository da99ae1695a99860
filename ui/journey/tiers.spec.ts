import { answers, ask, ENDLESS, expect, test } from './test';

test('tiers are loaded and unloaded from the picker, one at a time', async ({ chat, host }) => {
  const picker = chat.getByTestId('tier-picker');
  const fast = chat.getByTestId('tier-option-fast');
  const primary = chat.getByTestId('tier-option-primary');
  await picker.click();
  await expect(fast).toContainText('Not loaded');

  await chat.getByTestId('tier-start-fast').click();
  await expect(fast).toContainText('Ready');
  await expect(chat.getByTestId('strip-tier')).toHaveText('Fast, Ready');
  const { pid } = await host.tier('fast');

  await chat.getByTestId('tier-start-primary').click();
  await expect(primary).toContainText('Ready');
  await expect(fast).toContainText('Not loaded');
  await expect(chat.getByTestId('strip-tier')).toHaveText('Everyday, Ready');
  expect(() => process.kill(pid as number, 0)).toThrow('ESRCH');

  await primary.click();
  await expect(picker).toHaveAccessibleName('Tier: Everyday, SmolLM2-135M-Instruct.Q4_1, Ready');
  await answers(chat, ENDLESS);
  await ask(chat, 'Tell me about the sea.');
  await expect(chat.getByTestId('message-assistant').locator('.markdown')).toHaveText(/\w+ \w+/);
  await expect(picker).toHaveAccessibleName(/Answering/);

  await picker.click();
  const stop = chat.getByTestId('tier-stop-primary');
  await stop.click();
  await expect(stop).toHaveText('Unload Now');
  await stop.click();
  await expect(primary).toContainText('Not loaded');
  await expect(chat.getByTestId('strip-tier')).toHaveText(/no model loaded/);
  expect((await host.tier('primary')).pid).toBeNull();
  await expect(chat.getByTestId('error-banner')).toContainText('Interrupted. The answer so far is kept.');
  await expect(chat.getByTestId('error-banner')).toContainText('stopped');
});

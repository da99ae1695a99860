import { ask, CONFIG, expect, test } from './test';

test('settings keep the comments of the file, and a refusal shows at its field', async ({
  chat,
  host,
  complaints,
}) => {
  complaints.expect(/status of 4\d\d.*\/tierbar\/v1\/config/);
  await ask(chat, 'Say hello.');
  await expect(chat.getByTestId('answer-stats')).toBeVisible();
  const opened = chat.waitForEvent('popup');
  await chat.getByTestId('open-settings').click();
  const settings = await opened;
  await settings.getByTestId('settings-nav-access').click();
  const listen = settings.getByTestId('settings-listen');
  await expect(listen).toHaveValue('127.0.0.1:11435');
  await listen.fill('everywhere');
  await listen.press('Enter');
  await expect(settings.getByTestId('settings-listen-error')).toContainText('everywhere');
  await settings.getByTestId('settings-nav-tiers').click();
  await expect(settings.getByTestId('settings-tier-fast-state')).toHaveText('Ready');

  const context = settings.getByTestId('settings-tier-fast-context');
  await expect(context).toHaveValue('2048');
  await context.fill('1536');
  await context.press('Enter');
  const saved = CONFIG.replace('context = 2048', 'context = 1536');
  await expect.poll(() => host.config()).toBe(saved);

  await context.fill('100');
  await context.press('Enter');
  await expect(settings.getByTestId('settings-tier-fast-context-error')).toContainText('256');
  await expect(context).toHaveAttribute('aria-invalid', 'true');
  expect(await host.config()).toBe(saved);
  await context.fill('1536');
  await context.press('Enter');
  await expect(settings.getByTestId('settings-tier-fast-context-error')).toBeHidden();

  await settings.getByTestId('settings-new-tier').fill('Not a name');
  await settings.getByTestId('settings-add-tier').click();
  await expect(settings.getByTestId('settings-new-tier-error')).toBeVisible();
  await settings.getByTestId('settings-new-tier').fill('coder');
  await settings.getByTestId('settings-add-tier').click();
  await settings.getByTestId('settings-tier-coder-model').selectOption('SmolLM2-135M-Instruct.Q4_1');
  await expect(settings.getByTestId('tier-start-coder')).toBeEnabled();
  expect(await host.config()).toContain('[tiers.coder]\nmodel = "SmolLM2-135M-Instruct.Q4_1"');
  expect(await host.config()).toContain('# How I like it.');

  await settings.getByTestId('settings-tier-coder-advanced').getByText('Advanced', { exact: true }).click();
  const lookup = settings.getByTestId('settings-tier-coder-lookup');
  const draft = settings.getByTestId('settings-tier-coder-draft_model');
  await lookup.click();
  await expect(lookup).toHaveAttribute('aria-checked', 'true');
  await draft.selectOption('SmolLM2-135M-Instruct.Q4_1');
  await expect(lookup).toHaveAttribute('aria-checked', 'false');
  expect(await host.config()).toContain('draft_model = "SmolLM2-135M-Instruct.Q4_1"\nlookup = false');
  await lookup.click();
  await expect(draft).toHaveValue('');

  await settings.getByTestId('settings-tier-coder-remove').click();
  await settings.getByTestId('confirm').click();
  await expect(settings.getByTestId('settings-tier-coder-model')).toHaveCount(0);
  expect((await host.config()).trimEnd()).toBe(saved.trimEnd());

  // The next answer comes from the tier as it is now.
  await ask(chat, 'Say it again.');
  await expect(chat.getByTestId('answer-stats')).toHaveCount(2);
  await settings.getByTestId('settings-nav-monitor').click();
  await expect(settings.getByTestId('memory-tier-fast')).toContainText('1,536 tokens of context');
  await expect(settings.getByTestId('memory-ram')).toContainText(/of 16 GB/);
  await expect(settings.getByTestId('memory-budget')).toContainText(/[\d.]+ MB of 12 GB/);
});

import { expect, test } from './test';

test('one model is seen to unload before the other loads', async ({ chat, host }) => {
  await chat.getByTestId('tier-picker').click();
  await chat.getByTestId('tier-start-fast').click();
  await expect(chat.getByTestId('strip-tier')).toHaveText('Fast, Ready');
  await chat.keyboard.press('Escape');

  await chat.getByTestId('strip-ram').click();
  const panel = chat.getByTestId('memory-panel');
  const share = (id: string) => panel.getByTestId(`memory-share-${id}`);
  await expect(share('fast')).toHaveAttribute('data-state', 'ready');
  await expect(panel.getByTestId('plan-fast')).toHaveText(
    /Weights\s*\d+ MB.*KV cache\s*\d+ MB.*Compute buffers\s*\d+ MB/s,
  );
  await expect(panel.getByTestId('memory-tier-fast')).toHaveText(/[\d.]+ MB used of \d+ MB planned/);

  // Records what the page shows of the two as it changes: reading it from here would be too late or too early.
  await chat.evaluate(() => {
    const seen: string[] = [];
    const look = (id: string) => {
      const find = (name: string) =>
        document.querySelector<HTMLElement>(`[data-testid=memory-panel] [data-testid=${name}-${id}]`);
      const words = find('memory-tier')?.innerText ?? '';
      const plan = find('plan') ? 'planned' : 'no plan';
      return `${find('memory-share')?.dataset.state}, ${plan}, ${words.match(/Unloaded to make room for \w+|Waiting for .*memory to be freed/)?.[0] ?? ''}`;
    };
    new MutationObserver(() => {
      const now = `${look('fast')} | ${look('primary')}`;
      if (now !== seen.at(-1)) seen.push(now);
    }).observe(document.body, { subtree: true, childList: true, attributes: true, characterData: true });
    Object.assign(window, { seen });
  });

  // A stopped worker does not end when asked, so the host kills it after a while: the unload takes long enough to be seen.
  const { pid } = await host.tier('fast');
  process.kill(pid as number, 'SIGSTOP');
  const started = await chat.request.post(`${host.url}/tierbar/v1/tiers/primary/start`);
  expect(started.status()).toBe(200);
  await expect(share('primary')).toHaveAttribute('data-state', 'ready');
  await expect(panel.getByTestId('plan-fast')).toBeHidden();
  await expect(panel.getByTestId('plan-primary')).toBeVisible();
  const seen = await chat.evaluate(() => (window as unknown as { seen: string[] }).seen);
  expect(seen.filter((states) => !states.includes('gone, no plan'))).toEqual([]);
  expect(seen).toContainEqual(
    expect.stringMatching(
      /^stopping, planned, Unloaded to make room for primary \| gone, no plan, Waiting for (\S+ \S+ of )?fast.s memory to be freed$/,
    ),
  );
  expect(seen.at(-1)).toMatch(/^gone, no plan.* \| ready, planned/);
});

test('typing loads the tier before anything is sent', async ({ chat, host }) => {
  await chat.getByTestId('tier-picker').click();
  await chat.getByTestId('tier-option-primary').click();
  await expect(chat.getByTestId('empty-state')).toContainText('It loads when you start typing.');
  expect((await host.tier('primary')).state).toBe('stopped');

  await chat.getByTestId('composer').pressSequentially('Why');
  await expect(chat.getByTestId('strip-tier')).toHaveText('Everyday, Ready');
  await expect(chat.getByTestId('composer')).toHaveValue('Why');
  await expect(chat.getByTestId('message-user')).toHaveCount(0);
  await expect(chat.getByTestId('empty-state')).toContainText('which is loaded.');
});

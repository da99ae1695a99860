import { Cloud } from './cloud';
import { ask, CONFIG, expect, test } from './test';

test('a chain skips a rate-limited cloud, and the window shows it', async ({ chat, host }) => {
  const cloud = new Cloud();
  await cloud.start();
  try {
    await host.configure(`${CONFIG}
[tiers.cloud]
model = "large"
engine = { endpoint = "${cloud.url}" }

[chains.nightly]
steps = ["cloud", "fast", "queue"]
`);
    const picker = chat.getByTestId('tier-picker');
    // The host rereads its file when that changes; the picker reads the chains each time it opens.
    await expect(async () => {
      if ((await picker.getAttribute('aria-expanded')) === 'true') await picker.click();
      await picker.click();
      await expect(chat.getByTestId('chain-option-nightly')).toBeVisible({ timeout: 1000 });
    }).toPass();
    await chat.getByTestId('chain-option-nightly').click();
    await expect(picker).toHaveAccessibleName('Chain: nightly, cloud, then fast, then the queue');

    await ask(chat, 'Say hello.');
    const stats = chat.getByTestId('answer-stats');
    await expect(stats).toHaveText(/^Fast, instead of cloud\s*SmolLM2-135M-Instruct\.Q4_1/);
    await expect(stats.getByText('instead of cloud')).toHaveAttribute('title', /^cloud: .+/);
    await ask(chat, 'And again.');
    await expect(stats).toHaveCount(2);
    await expect(stats.last()).toContainText('Fast, instead of cloud');
    expect(cloud.requests, 'a rate-limited cloud is not tried again').toBe(1);

    const opened = chat.waitForEvent('popup');
    await chat.getByTestId('open-settings').click();
    const settings = await opened;
    await settings.getByTestId('settings-nav-monitor').click();
    const step = (name: string) => settings.getByTestId(`chain-step-${name}`);
    await expect(step('cloud')).toHaveText(/^1\s*cloud\s*Rate limited: next attempt in \d+ min$/);
    await expect(step('fast')).toHaveText(/^2\s*Fast\s*(Ready|Answering)$/);
    await expect(step('queue')).toHaveText(/^3\s*Queue\s*Queues requests that no other step answers$/);
    await expect(settings.getByTestId('queue-counts')).toBeHidden();

    // While Tierbar is paused, queued requests stay in the queue.
    const paused = await chat.request.post(`${host.url}/tierbar/v1/pause`, { data: {} });
    expect(paused.status()).toBe(200);
    const left = await chat.request.post(`${host.url}/v1/chat/completions`, {
      headers: { 'x-tierbar-queue': 'only' },
      data: { model: 'nightly', messages: [{ role: 'user', content: 'Later.' }] },
    });
    expect(left.status()).toBe(202);
    const { url } = (await left.json()) as { url: string };
    await expect(settings.getByTestId('queue-counts')).toHaveText('1 waiting');
    await expect(step('queue')).toContainText('1 waiting');
    await settings.getByTestId('queue-remove').click();
    await settings.getByTestId('confirm').click();
    await expect(settings.getByTestId('queued')).toHaveCount(0);
    const ended = await chat.request.get(`${host.url}${url}`);
    expect((await ended.json()).state).toBe('cancelled');

    // A streaming client would not come back for an answer: the chat shows the failure, and nothing is queued.
    await ask(chat, 'And now?');
    await expect(chat.getByTestId('error-banner')).toContainText(/no step of nightly could answer/i);
    const queue = await chat.request.get(`${host.url}/tierbar/v1/queue`);
    expect((await queue.json()).counts).toEqual({ cancelled: 1 });
  } finally {
    await cloud.stop();
  }
});

import { expect, test } from './test';

test('the page asks for the token once, and rejects a wrong one', async ({
  page,
  context,
  host,
  complaints,
}) => {
  complaints.expect(/status of 401.*\/tierbar\/v1\/events/);
  complaints.expect(/status of 401.*\/tierbar\/v1\/session/);
  await page.goto(host.url);
  await expect(page.getByRole('heading', { name: 'Sign In to Tierbar' })).toBeVisible();
  await expect(page.getByTestId('token-input')).toBeFocused();
  await expect(page.getByTestId('composer')).toBeHidden();

  await page.getByTestId('token-input').fill('not-the-token');
  await page.getByTestId('token-submit').click();
  await expect(page.getByTestId('token-error')).toHaveText('The token is incorrect.');

  await page.getByTestId('token-input').fill(`  ${host.token}\n`);
  await page.getByTestId('token-submit').click();
  await expect(page.getByTestId('composer')).toBeFocused();
  await expect(page.getByTestId('strip-ram')).toContainText(/of 16 GB/);

  const [cookie] = await context.cookies();
  expect(cookie).toMatchObject({
    name: `tierbar_session_${new URL(host.url).port}`,
    httpOnly: true,
    sameSite: 'Strict',
  });
  expect(cookie?.value).not.toContain(host.token);
  const kept = await page.evaluate(() =>
    JSON.stringify([
      { ...localStorage },
      { ...sessionStorage },
      document.cookie,
      location.href,
      history.state,
    ]),
  );
  expect(kept).not.toContain(host.token);

  await page.reload();
  await expect(page.getByTestId('composer')).toBeVisible();
  await expect(page.getByTestId('token-input')).toBeHidden();
});

test('the page reconnects to its host after a restart', async ({ chat, host, complaints }) => {
  complaints.expect(/ERR_CONNECTION_REFUSED/);
  await expect(chat.getByTestId('strip-ram')).toBeVisible();
  await chat.getByTestId('composer').fill('A draft that must not be lost');

  await host.stop();
  await expect(chat.getByTestId('connection-banner')).toContainText('Tierbar is not responding.');
  await host.start();
  await expect(chat.getByTestId('connection-banner')).toBeHidden();
  await expect(chat.getByTestId('composer')).toHaveValue('A draft that must not be lost');
});

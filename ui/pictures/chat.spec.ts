import { download, GIB, localModel } from '../src/testing/models';
import {
  addChat,
  answer,
  HOSTILE,
  NOW,
  PLAN,
  question,
  REASONING,
  respond,
  status,
  TIERS,
  text,
  WITHOUT_MODELS,
} from './scene';
import { expect, look, test } from './test';

const MATH = 'The dot product in Python';

test('a new chat', async ({ page, open }) => {
  await open();
  await expect(page.getByTestId('chat-item')).toHaveCount(3);
  await look(page, 'chat-new');
});

test('the first launch', async ({ page, open, network }) => {
  network.chats = [];
  network.override = (request) =>
    request.path === '/tierbar/v1/setup'
      ? Response.json(PLAN)
      : request.path === '/tierbar/v1/models'
        ? Response.json({ models_dir: '/models', disks: [], models: [] })
        : respond(request);
  await open('/', WITHOUT_MODELS);
  await expect(page.getByTestId('welcome-get')).toBeVisible();
  await look(page, 'welcome');

  // Beside the demo model, while the first real one comes.
  const [fast, ...others] = WITHOUT_MODELS.tiers;
  const demo = 'SmolLM2-135M-Instruct.Q4_1';
  network.override = (request) =>
    request.path === '/tierbar/v1/models'
      ? Response.json({ models_dir: '/models', disks: [], models: [localModel(demo)] })
      : request.path === '/tierbar/v1/setup'
        ? Response.json(PLAN)
        : respond(request);
  const reference = PLAN.tiers[1]?.reference ?? '';
  await open('/', {
    ...WITHOUT_MODELS,
    tiers: [{ ...(fast as (typeof TIERS)[0]), model: demo, is_starter: true }, ...others],
    downloads: [
      download('gemma-4-E4B-it', { reference, received_bytes: 1_900_000_000, total_bytes: 5_126_306_944 }),
    ],
  });
  await expect(page.getByTestId('empty-state').getByRole('progressbar')).toBeVisible();
  await look(page, 'welcome-downloading');
  await page.setViewportSize({ width: 390, height: 844 });
  await expect(page.getByTestId('sidebar-show')).toBeVisible();
  await look(page, 'welcome-phone');
});

test('an answer with reasoning, formulas, a table and code', async ({ page, open }) => {
  await page.setViewportSize({ width: 980, height: 1180 });
  await open();
  await page.getByRole('button', { name: MATH, exact: true }).click();
  await expect(page.locator('.formula mfrac, .formula munder, .formula msqrt').first()).toBeVisible();
  await expect(page.locator('pre code .hljs-keyword').first()).toHaveText('def');
  await page.getByTestId('reasoning').locator('summary').click();
  await look(page, 'answer');

  await page.setViewportSize({ width: 390, height: 844 });
  await expect(page.getByTestId('sidebar-show')).toBeVisible();
  await look(page, 'answer-phone');
  await page.getByTestId('sidebar-show').click();
  await look(page, 'chats-phone');
});

test('thinking, then streaming', async ({ page, open, network }) => {
  await open();
  await page.getByTestId('composer').fill('How do I compute a dot product?');
  await page.getByTestId('send').click();
  await expect.poll(() => network.turns.length).toBe(1);
  const turn = network.turns[0];
  turn?.thoughts(REASONING);
  await expect(page.getByTestId('reasoning-tail')).toContainText('Python 3.12');
  await look(page, 'thinking');
});

test('an agent that asks before it changes a file', async ({ page, open, network }) => {
  await open();
  await page.getByTestId('composer').fill('/agent /Users/ada/toy');
  await page.getByTestId('send').click();
  await page.getByTestId('composer').fill('Mend the failing test');
  await page.getByTestId('send').click();
  await expect.poll(() => network.turns.length).toBe(1);
  const turn = network.turns[0];
  turn?.event({ type: 'tool_call', id: 's1', name: 'run_command', arguments: '{"command":"make test"}' });
  turn?.event({ type: 'tool_result', id: 's1', text: '1 failed: test_total', failed: true });
  turn?.event({
    type: 'consent',
    question: {
      id: 'q1',
      title: 'Change this file?',
      summary: '6 lines',
      what: 'total.py',
      diff: '--- a/total.py\n+++ b/total.py\n@@ -1,2 +1,2 @@\n def total(prices):\n-    return sum(prices[1:])\n+    return sum(prices)\n',
      folder: '/Users/ada/toy',
      act: 'write',
      scopes: ['once', 'folder'],
    },
  });
  await expect(page.getByTestId('consent-once')).toBeEnabled();
  await look(page, 'agent');

  turn?.consent({ id: 'q1', allow: 'once' });
  turn?.event({ type: 'tool_call', id: 's2', name: 'edit_file', arguments: '{"path":"total.py"}' });
  turn?.event({ type: 'tool_result', id: 's2', text: 'total.py is changed.', failed: false });
  turn?.words('The sum left out the first price. The test passes now.');
  turn?.finish('stop', 18);
  await expect(page.getByTestId('undo-changes')).toBeVisible();
  await look(page, 'agent-done');
});

test('a tier that loads', async ({ page, open, network }) => {
  const loading = { state: 'starting', loaded_percent: 40 } as const;
  await open(
    '/',
    status({ tiers: TIERS.map((tier) => (tier.id === 'fast' ? { ...tier, ...loading } : tier)) }),
  );
  await page.getByTestId('composer').fill('Hello');
  await page.getByTestId('send').click();
  await expect.poll(() => network.turns.length).toBe(1);
  network.turns[0]?.loading();
  await expect(page.getByText('Loading ', { exact: false }).first()).toBeVisible();
  await look(page, 'loading');
});

test('answers that ended early, and files', async ({ page, open, network }) => {
  const file = { sha256: 'a', media_type: 'text/x-rust', name: 'main.rs', bytes: 4100 };
  addChat(network, 'A long story', [
    question('Summarize this file.', { type: 'file', file }),
    answer([text('It starts the program.')], { finish: 'repetition' }),
    question('Tell me a long story.'),
    answer([text('Once upon a time there was a compiler that never complained, and')], {
      finish: 'length',
      instead_of: 'heavy',
      why: 'heavy needs 11.7 GiB and 9.1 GiB are free',
      context: { prompt_tokens: 24_100, answer_tokens: 5900, context_tokens: 32768 },
    }),
  ]);
  await open();
  await page.getByRole('button', { name: 'A long story', exact: true }).click();
  await expect(page.getByTestId('continue')).toBeVisible();
  await page
    .getByTestId('file-picker')
    .setInputFiles({ name: 'talk.mp3', mimeType: 'audio/mpeg', buffer: Buffer.from('ID3') });
  await expect(page.getByTestId('file-trouble')).toBeVisible();
  await look(page, 'answer-ended-early');
});

test('two answers to a message that is edited', async ({ page, open, network }) => {
  const asking = question('Name a color.');
  const first = answer([text('Blue.')]);
  const second = answer([text('Teal.')], { tier: 'fast' });
  const chat = addChat(network, 'Colors', [asking, first, second]);
  second.parent = asking.id;
  chat.leaf = second.id;
  await open();
  await page.getByRole('button', { name: 'Colors', exact: true }).click();
  await page.getByTestId('edit-question').click();
  await expect(page.getByTestId('editing')).toBeVisible();
  await look(page, 'editing');
});

test('a cloud that asks to wait', async ({ page, open, network }) => {
  await open();
  await page.getByTestId('composer').fill('Hello');
  await page.getByTestId('send').click();
  await expect.poll(() => network.turns.length).toBe(1);
  network.turns[0]?.fail(
    'rate_limited',
    'api.anthropic.com accepts no more requests for now',
    'wait, or ask another tier',
    {
      tier: 'sonnet',
      retry_after_seconds: 30,
    },
  );
  await expect(page.getByTestId('ask-instead')).toBeVisible();
  await look(page, 'problem');
});

test('a host that is gone', async ({ page, open, server, context }) => {
  await open();
  await page.getByRole('button', { name: 'Plan a weekend in Lisbon', exact: true }).click();
  await expect(page.getByTestId('message-assistant')).toBeVisible();
  await page.getByTestId('composer').fill('What is typed stays.');
  await context.setOffline(true);
  await server.stop();
  await expect(page.getByTestId('connection-banner')).toContainText('not responding');
  await look(page, 'lost');
});

test('an alarm, a notice, and a pause', async ({ page, open }) => {
  const why = 'swap grew by 410 MiB in the last minute while 0.9 GiB was available: models are unloaded';
  await open(
    '/',
    status({
      guard: { alarm: 'critical', stance: 'defers', why, paused_until: null },
      ram: { total_bytes: 16 * GIB, available_bytes: 0.9 * GIB, pressure: 'critical' },
      notices: ['config.toml, line 4: listn is not a setting; did you mean listen?'],
    }),
  );
  await expect(page.getByTestId('alarm')).toBeVisible();
  await look(page, 'alarm');
  await open(
    '/',
    status({ guard: { alarm: 'none', stance: 'paused', why: null, paused_until: NOW + 7_200_000 } }),
  );
  await expect(page.getByTestId('paused')).toBeVisible();
  await look(page, 'paused');
});

test('what opens above a chat', async ({ page, open }) => {
  await open();
  await page.getByTestId('tier-picker').click();
  await look(page, 'tiers-menu');
  await page.keyboard.press('Escape');
  await page.getByTestId('strip-ram').click();
  await expect(page.getByTestId('memory-panel')).toBeVisible();
  await look(page, 'memory');
  await page.keyboard.press('Escape');
  await page.getByTestId('chat-settings').click();
  await expect(page.getByTestId('chat-settings-dialog')).toBeVisible();
  await look(page, 'chat-settings');
  await page.keyboard.press('Escape');
  await page.getByTestId('composer').fill('/');
  await expect(page.getByTestId('commands')).toBeVisible();
  await look(page, 'commands');
  await page.getByTestId('composer').fill('');
  await page.keyboard.press('Control+k');
  await page.getByTestId('palette-input').fill('mo');
  await look(page, 'palette');
});

test('chats that are searched, deleted and imported', async ({ page, open, network }) => {
  network.imported = {
    chats: 12,
    messages: 340,
    known: 2,
    left_out: [{ what: 'images', count: 3, why: 'the export does not contain them' }],
  };
  await open();
  await page.getByTestId('search').fill('compile');
  await expect(page.locator('mark, [data-testid=chat-item]').first()).toContainText(/build|compile/);
  await look(page, 'search');
  await page.getByTestId('search').fill('');
  await page.getByTestId('chat-item').last().click({ button: 'right' });
  await page.getByTestId('chat-delete').click();
  await expect(page.getByTestId('undo')).toBeVisible();
  await look(page, 'deleted');
  await page
    .getByTestId('import-files')
    .setInputFiles({ name: 'chats.json', mimeType: 'application/json', buffer: Buffer.from('[]') });
  await expect(page.getByRole('dialog')).toBeVisible();
  await look(page, 'imported');
});

test('an answer that means harm runs nothing and hangs nothing', async ({ page, open, network }) => {
  addChat(network, 'Harm', [question('\u202eWhat is this?'), answer([text(HOSTILE)])]);
  await open();
  await page.getByRole('button', { name: 'Harm', exact: true }).click();
  const shown = page.getByTestId('message-assistant');
  await expect(shown.getByRole('table').locator('th')).toHaveCount(200);
  await expect(
    shown.locator('script, img, iframe, svg:not(footer *), [onload], [onerror], a[href^=javascript]'),
  ).toHaveCount(0);
  expect(await page.evaluate(() => (window as unknown as { ran?: number }).ran)).toBeUndefined();
  expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThanOrEqual(0);
  await page.getByRole('region', { name: 'Conversation' }).evaluate((region) => {
    region.scrollTop = 0;
  });
  await look(page, 'harm');
});

test.describe('a screen of 1280×720 at 200 %', () => {
  test.use({ viewport: { width: 1280, height: 720 }, deviceScaleFactor: 2 });
  test('shows a chat', async ({ page, open }) => {
    await open();
    await page.getByRole('button', { name: MATH, exact: true }).click();
    await expect(page.locator('.formula mfrac, .formula munder, .formula msqrt').first()).toBeVisible();
    await look(page, 'answer-large');
  });
});

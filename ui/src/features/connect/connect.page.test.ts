import { fireEvent, screen, within } from '@testing-library/svelte';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { App } from '../../lib/app';
import type { ClientSettings } from '../../platform/openapi';
import { browser } from '../../testing/browser';
import { configured } from '../../testing/config';
import { Network, refusal, type Sent, STATUS, until } from '../../testing/host';
import { openSettings } from '../../testing/settings';

const CLAUDE: ClientSettings = {
  id: 'claude-code',
  name: 'Claude Code',
  about: 'coding agent',
  needs: { tools: true, context: 32768 },
  found: true,
  model: 'heavy',
  reason:
    'heavy supports tools and has a context of 12288 tokens; Claude Code needs tools and at least 32768 tokens',
  warnings: ['Claude Code needs a context of at least 32768 tokens, and heavy has 12288'],
  settings: [
    {
      kind: 'environment',
      place: 'the environment of your shell',
      text: 'export ANTHROPIC_MODEL=heavy',
      form: null,
    },
    { kind: 'file', place: '~/.claude/settings.json', text: '{"env": {}}', form: 'json' },
  ],
  notes: ['Use either of the two: `a` or `b`.'],
};
const CURL: ClientSettings = {
  ...CLAUDE,
  id: 'curl',
  name: 'curl',
  needs: { tools: false, context: 0 },
  found: false,
  model: 'primary',
  warnings: [],
  settings: [{ kind: 'terminal', place: 'a terminal', text: 'curl http://host', form: null }],
  notes: [],
};
const DESKTOP: ClientSettings = {
  ...CURL,
  id: 'claude-desktop',
  name: 'Claude Desktop',
  model: null,
  reason: "Claude Desktop uses Tierbar's tools and no model of it",
  settings: [
    {
      kind: 'file',
      place: '~/Library/Application Support/Claude/claude_desktop_config.json',
      text: '{"mcpServers": {}}',
      form: 'json',
    },
  ],
};
const REFUSED = { origin: 'http://localhost:3000', since_ms: 7 };

let network: Network;
let app: App;
let allowed: string[];
let refuse: boolean;

function answer({ method, path, body }: Sent): Response | null {
  if (path === '/tierbar/v1/config')
    return Response.json({ path: '/data/config.toml', config: configured({}) });
  if (path === '/tierbar/v1/models')
    return Response.json({ models_dir: '/data/models', disks: [], models: [] });
  if (path === '/tierbar/v1/connect') {
    const tiers = [
      { id: 'heavy', context_tokens: 12288, tools: true },
      { id: 'primary', context_tokens: 8192, tools: null },
    ];
    const server = {
      url: 'http://127.0.0.1:11435',
      key_required: false,
      tiers,
      embedder: null,
      mcp_command: ['/opt/tierbar', 'mcp'],
    };
    return Response.json({ server, clients: [CURL, CLAUDE, DESKTOP] });
  }
  if (!path.startsWith('/tierbar/v1/origins')) return null;
  if (refuse && method === 'POST') return refusal(403, 'forbidden', 'sign in again');
  if (method === 'POST') allowed = [...allowed, body.origin];
  if (method === 'DELETE') {
    const origin = new URL(path, 'http://host').searchParams.get('origin');
    allowed = allowed.filter((other) => other !== origin);
  }
  return Response.json({ allowed, refused: [], program_schemes: ['app'] });
}

beforeEach(() => {
  browser();
  network = new Network();
  network.override = answer;
  allowed = [];
  refuse = false;
});
afterEach(() => {
  app.feed.stop();
  location.hash = '';
});

async function open(refused: (typeof REFUSED)[] = []) {
  app = await openSettings(network, 'connect', { ...STATUS, refused_origins: refused });
}

const posted = () => network.sent('POST', '/tierbar/v1/origins').map(({ body }) => body);

it('shows the settings of an app that is found first, to copy', async () => {
  await open();
  const app = await screen.findByTestId<HTMLSelectElement>('connect-app');
  expect(app.value).toBe('claude-code');
  const settings = screen.getByTestId('connect-settings');
  expect([...settings.querySelectorAll('code')].map(({ textContent }) => textContent)).toEqual(
    expect.arrayContaining(['a', 'b']),
  );
  expect(settings.textContent).toContain(
    'Use heavy as its model. It supports tools and has a context of 12,288 tokens. Claude Code needs tools and a context of at least 32,768 tokens.',
  );
  expect(screen.getByTestId('connect-warning').textContent).toContain('and Deep has 12,288.');
  expect(within(settings).getByText('export ANTHROPIC_MODEL=heavy')).toBeTruthy();
  expect(within(settings).getByText('In ~/.claude/settings.json')).toBeTruthy();
  expect(settings.textContent).toContain('tierbar connect claude-code --write');
  expect(screen.getByText('http://127.0.0.1:11435/v1')).toBeTruthy();
  expect(screen.getByText('http://127.0.0.1:11435/mcp')).toBeTruthy();
});

it('shows another app when it is chosen', async () => {
  await open();
  const app = await screen.findByTestId('connect-app');
  await fireEvent.change(app, { target: { value: 'curl' } });
  await screen.findByText('curl http://host');
  expect(screen.getByText('In a terminal')).toBeTruthy();
  expect(screen.queryByTestId('connect-warning')).toBeNull();
  expect(screen.getByTestId('connect-settings').textContent).not.toContain('--write');
});

it('says what an app can do that uses the tools alone', async () => {
  await open();
  const app = await screen.findByTestId('connect-app');
  await fireEvent.change(app, { target: { value: 'claude-desktop' } });
  await screen.findByText('{"mcpServers": {}}');
  const settings = screen.getByTestId('connect-settings');
  expect(settings.textContent).toContain('Claude Desktop uses Tierbar’s tools: it can search your documents');
  expect(settings.textContent).not.toContain('as its model');
  expect(screen.queryByTestId('connect-warning')).toBeNull();
  expect(settings.textContent).toContain('tierbar connect claude-desktop --write');
});

it('lets a refused page in with one click', async () => {
  await open([REFUSED]);
  const banner = await screen.findByTestId('refused-page');
  expect(banner.textContent).toContain('http://localhost:3000');
  await fireEvent.click(within(banner).getByTestId('refused-page-allow'));
  await until(() => posted().length === 1);
  expect(posted()).toEqual([{ origin: 'http://localhost:3000' }]);
  network.eventStreams[0]?.event('change', { refused_origins: [] });
  await until(() => screen.queryByTestId('refused-page') === null);
  const row = await screen.findByTestId('origin-allowed');
  expect(row.textContent).toContain('http://localhost:3000');
});

it('says why a page cannot be let in, and dismisses it', async () => {
  refuse = true;
  await open([REFUSED]);
  const banner = await screen.findByTestId('refused-page');
  await fireEvent.click(within(banner).getByTestId('refused-page-allow'));
  await until(() => banner.textContent?.includes('Sign in again.'));
  await fireEvent.click(within(banner).getByLabelText('Dismiss'));
  expect(screen.queryByTestId('refused-page')).toBeNull();
});

it('allows a typed address and takes it back', async () => {
  await open();
  await fireEvent.input(await screen.findByTestId('origin-new'), {
    target: { value: ' https://a.example ' },
  });
  await fireEvent.click(screen.getByTestId('origin-add'));
  const row = await screen.findByTestId('origin-allowed');
  expect(row.textContent).toContain('https://a.example');
  await fireEvent.click(within(row).getByTestId('origin-revoke'));
  await until(() => screen.queryByTestId('origin-allowed') === null);
  expect(network.requests.at(-1)?.path).toBe('/tierbar/v1/origins?origin=https%3A%2F%2Fa.example');
});

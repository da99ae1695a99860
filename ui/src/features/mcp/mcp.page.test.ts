import { fireEvent, screen, within } from '@testing-library/svelte';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { App } from '../../lib/app';
import type { Config, McpServerConfig } from '../../platform/openapi';
import { browser } from '../../testing/browser';
import { configured } from '../../testing/config';
import { Network, refusal, until } from '../../testing/host';
import { openSettings } from '../../testing/settings';

const EMPTY: McpServerConfig = {
  command: [],
  url: '',
  folder: '',
  read: [],
  network: false,
  variables: [],
  key_variable: '',
  tools: [],
  enabled: true,
};

const TOOLS = [{ name: 'search', description: 'Searches the notes', offered: true }];

let network: Network;
let app: App;
let config: Config;
let refuse: string | null;
let fails: boolean;
let refuseKey: boolean;

beforeEach(() => {
  browser();
  network = new Network();
  config = configured();
  refuse = null;
  fails = false;
  refuseKey = false;
  network.override = ({ method, path, body }) => {
    if (path === '/tierbar/v1/config') {
      if (method === 'PATCH') {
        const changed: Record<string, McpServerConfig> = { ...config.mcp };
        for (const [name, server] of Object.entries(body.mcp as Record<string, McpServerConfig | null>)) {
          if (server === null) delete changed[name];
          else changed[name] = { ...EMPTY, ...changed[name], ...server };
        }
        config = { ...config, mcp: changed };
      }
      return Response.json({ path: '/data/config.toml', config });
    }
    if (path === '/tierbar/v1/connect') return Response.json({ server: {}, clients: [] });
    const named = /^\/tierbar\/v1\/mcp-servers\/(\w+)(\/test)?$/.exec(path);
    if (named === null) return null;
    const [, name = '', isTest] = named;
    const why = `the MCP server ${name} has ended with code 1`;
    if (isTest && fails) return refusal(502, 'unreachable', why);
    if (isTest) return Response.json({ name, tools: TOOLS, problem: null });
    if (refuse) return refusal(400, 'config_invalid', refuse);
    if (refuseKey) {
      const error = { code: 'bad_request', message: 'the token for mcp-notes is invalid', param: 'key' };
      return Response.json({ error }, { status: 400 });
    }
    if (fails && !body.anyway) {
      const error = { code: 'unreachable', message: why, hint: 'set `folder`', saved: false };
      return Response.json({ error }, { status: 502 });
    }
    config = { ...config, mcp: { ...config.mcp, [name]: body.server } };
    return Response.json({ name, tools: fails ? [] : TOOLS, problem: fails ? why : null });
  };
});
afterEach(() => {
  app.feed.stop();
  location.hash = '';
});

async function open() {
  app = await openSettings(network, '#connect');
  await until(() => screen.queryByTestId('mcp-add'));
}

const type = (testid: string, value: string) =>
  fireEvent.input(screen.getByTestId(testid), { target: { value } });
const put = (name: string) => network.sent('PUT', `/tierbar/v1/mcp-servers/${name}`).map(({ body }) => body);
const sent = () => network.sent('PATCH', '/tierbar/v1/config').map(({ body }) => body);

describe('MCP servers', () => {
  it('are added with a key, tried out, turned off and removed', async () => {
    await open();
    expect(screen.getByTestId('mcp-empty').textContent).toContain(
      'Tierbar asks before each use, unless you allow more.',
    );
    await fireEvent.click(screen.getByTestId('mcp-add'));
    expect(document.activeElement).toBe(screen.getByTestId('mcp-name'));
    await type('mcp-name', 'notes');
    await type('mcp-command', 'npx -y "my notes"');
    await type('mcp-folder', '~/Notes');
    await type('mcp-read', '~/venv "~/My Tools');
    await type('mcp-key', 'secret');
    await fireEvent.click(screen.getByTestId('mcp-save'));
    expect(screen.getByTestId('mcp-problem').dataset.field).toBe('read');
    await type('mcp-read', '~/venv "~/My Tools"');
    await fireEvent.click(screen.getByTestId('mcp-save'));
    expect(screen.getByTestId('mcp-problem').dataset.field).toBe('key_variable');
    await type('mcp-key_variable', 'API_KEY');
    await fireEvent.click(screen.getByTestId('mcp-save'));
    const row = await screen.findByTestId('mcp-server');
    await until(() => row.textContent?.includes('Connected. It has 1 tool.'));
    expect(row.textContent).toContain(
      'Can read and change files in ~/Notes, and read files in ~/venv, ~/My Tools, without the network.',
    );
    expect(within(row).getByTestId('mcp-tools').textContent).toContain('Searches the notes');
    const server = {
      ...EMPTY,
      command: ['npx', '-y', 'my notes'],
      folder: '~/Notes',
      read: ['~/venv', '~/My Tools'],
      key_variable: 'API_KEY',
    };
    expect(put('notes')).toEqual([{ server, key: 'secret' }]);

    await fireEvent.click(within(row).getByTestId('mcp-edit'));
    expect(screen.queryByTestId('mcp-name')).toBeNull();
    expect(screen.getByTestId<HTMLInputElement>('mcp-command').value).toBe('npx -y "my notes"');
    expect(screen.getByTestId<HTMLInputElement>('mcp-read').value).toBe('~/venv "~/My Tools"');
    await type('mcp-folder', '');
    await fireEvent.click(screen.getByTestId('mcp-save'));
    await until(() => document.activeElement === within(row).getByTestId('mcp-edit'));
    expect(put('notes').at(-1)).toEqual({ server: { ...server, folder: '' } });

    fails = true;
    await fireEvent.click(within(row).getByTestId('mcp-test'));
    await screen.findByText('The MCP server notes has ended with code 1.');
    expect(within(row).queryByTestId('mcp-tools')).toBeNull();
    await fireEvent.click(within(row).getByTestId('mcp-enabled'));
    expect(sent().at(-1)).toEqual({ mcp: { notes: { enabled: false } } });
    await until(() => within(row).getByTestId('mcp-enabled').getAttribute('aria-checked') === 'false');
    await fireEvent.click(within(row).getByTestId('mcp-remove'));
    await fireEvent.click(screen.getByRole('button', { name: 'Remove' }));
    await screen.findByTestId('mcp-empty');
    expect(sent().at(-1)).toEqual({ mcp: { notes: null } });
    await until(() => document.activeElement === screen.getByTestId('mcp-add'));
  });

  it('that do not answer are saved by choice alone', async () => {
    await open();
    fails = true;
    await fireEvent.click(screen.getByTestId('mcp-add'));
    await type('mcp-name', 'notes');
    await type('mcp-command', 'notes');
    await fireEvent.click(screen.getByTestId('mcp-save'));
    const problem = await screen.findByTestId('mcp-problem');
    expect(problem.textContent).toContain('The MCP server notes has ended with code 1. Set folder.');
    expect(problem.textContent).toContain('Nothing was saved.');
    expect(config.mcp).toBeUndefined();
    expect(screen.getByTestId<HTMLInputElement>('mcp-command').value).toBe('notes');

    // Once something is changed, it is tried out again.
    await type('mcp-folder', '~/Notes');
    expect(screen.queryByTestId('mcp-anyway')).toBeNull();
    await fireEvent.click(screen.getByTestId('mcp-save'));
    await fireEvent.click(await screen.findByTestId('mcp-anyway'));
    const row = await screen.findByTestId('mcp-server');
    expect(row.textContent).toContain('has ended with code 1');
    expect(put('notes').map(({ anyway }) => anyway)).toEqual([undefined, undefined, true]);
    expect(screen.queryByTestId('mcp-form')).toBeNull();
  });

  it('are forgotten with what was wrong when their form is closed', async () => {
    await open();
    fails = true;
    await fireEvent.click(screen.getByTestId('mcp-add'));
    await type('mcp-name', 'notes');
    await type('mcp-command', 'notes');
    await fireEvent.click(screen.getByTestId('mcp-save'));
    await screen.findByTestId('mcp-anyway');
    await fireEvent.click(screen.getByRole('button', { name: 'Cancel' }));
    await screen.findByTestId('mcp-empty');
    expect(screen.queryByText(/has ended/)).toBeNull();
  });

  it('tell at the key that it is refused', async () => {
    await open();
    refuseKey = true;
    await fireEvent.click(screen.getByTestId('mcp-add'));
    await type('mcp-name', 'notes');
    await type('mcp-command', 'notes');
    await type('mcp-key', 'two words');
    await type('mcp-key_variable', 'API_KEY');
    await fireEvent.click(screen.getByTestId('mcp-save'));
    const problem = await screen.findByTestId('mcp-problem');
    expect(problem.dataset.field).toBe('key');
    expect(problem.textContent).toContain('The token for mcp-notes is invalid');
    expect(document.activeElement).toBe(screen.getByTestId('mcp-key'));
    expect(screen.queryByTestId('mcp-anyway')).toBeNull();
  });

  it('at an address tell what is wrong at its field', async () => {
    await open();
    await fireEvent.click(screen.getByTestId('mcp-add'));
    await type('mcp-name', 'issues');
    await fireEvent.change(screen.getByTestId('mcp-kind'), { target: { value: 'address' } });
    await type('mcp-url', 'http://mcp.example.com');
    refuse = 'mcp.issues.url: "http://mcp.example.com" is neither https:// nor on this machine';
    await fireEvent.click(screen.getByTestId('mcp-save'));
    const problem = await screen.findByTestId('mcp-problem');
    expect(problem.dataset.field).toBe('url');
    expect(problem.textContent).toContain('is neither https:// nor on this machine');
    expect(document.activeElement).toBe(screen.getByTestId('mcp-url'));
    await fireEvent.keyDown(screen.getByTestId('mcp-url'), { key: 'Escape' });
    await until(() => document.activeElement === screen.queryByTestId('mcp-add'));
    expect(config.mcp).toBeUndefined();
  });
});

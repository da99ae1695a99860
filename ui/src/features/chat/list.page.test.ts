import { fireEvent, render, screen, within } from '@testing-library/svelte';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type App, startApp } from '../../lib/app';
import type { Platform } from '../../platform';
import { browser } from '../../testing/browser';
import { Network, refusal, STATUS, until } from '../../testing/host';
import { paletteEntries } from '../palette/entries';
import { Chats } from './chats.svelte';
import Root from './Root.svelte';

let network: Network;
let app: App;
let chats: Chats;
const platform: Platform = {
  connection: async () => ({ url: '' }),
  openSettings: vi.fn(async () => {}),
  openChat: vi.fn(async () => {}),
};

beforeEach(() => {
  network = new Network();
  browser();
});
afterEach(() => {
  app.feed.stop();
  chats.leave();
});

/** Opens the page with so many chats, the last of them first. */
async function open(count: number, listed = count > 0) {
  for (let number = 1; number <= count; number += 1)
    network.chats.push({
      id: `c${number}`,
      title: `Chat ${number}`,
      model: 'auto',
      created_at: '2026-01-01T00:00:00Z',
      updated_at: '2026-01-01T00:00:00Z',
      when_full: 'refuse',
      pinned: false,
      instructions: '',
      sampling: {},
      thinking: null,
      turn: null,
      leaf: null,
      messages: [],
    });
  app = startApp(platform);
  chats = new Chats({ api: app.api });
  render(Root, { app, chats });
  await until(() => network.eventStreams.length === 1);
  network.eventStreams[0]?.event('snapshot', STATUS);
  await screen.findByTestId('composer');
  if (listed) await until(() => screen.queryAllByTestId('chat-item').length > 0);
}

const opener = (name: string) => screen.getByRole('button', { name });
const focused = () => document.activeElement?.textContent?.trim();
const press = (key: string, more: KeyboardEventInit = {}) =>
  fireEvent.keyDown(document.activeElement ?? document.body, { key, ...more });

describe('the list of chats', () => {
  it('draws only some of ten thousand, and has one tab stop', async () => {
    await open(10_000);
    expect(screen.getAllByTestId('chat-item').length).toBeLessThan(60);
    const list = screen.getByRole('list', { name: 'Chats' });
    expect(list.querySelectorAll('[tabindex="0"]')).toHaveLength(1);
    expect(list.querySelector('li[aria-posinset]')?.getAttribute('aria-setsize')).toBe('10000');
  });

  it('is walked through with the keyboard', async () => {
    await open(1_000);
    opener('Chat 1000').focus();
    await press('ArrowDown');
    await until(() => focused() === 'Chat 999');
    await press('End');
    await until(() => focused() === 'Chat 1');
    await press('ArrowDown');
    expect(focused()).toBe('Chat 1');
    await press('Home');
    await until(() => focused() === 'Chat 1000');
    await press('ArrowRight');
    await until(() => focused() === 'Rename');
    await press('Escape');
    expect(document.activeElement?.getAttribute('aria-label')).toBe('Actions for Chat 1000');
  });

  it('renames with F2 and deletes with Delete; the focus goes to the next chat', async () => {
    await open(3);
    opener('Chat 3').focus();
    await press('F2');
    const title = await screen.findByTestId('chat-title-input');
    await fireEvent.input(title, { target: { value: 'Rivers' } });
    // Enter that ends the renaming does not press the button that gets the focus.
    expect(await fireEvent.keyDown(title, { key: 'Enter' })).toBe(false);
    await until(() => network.chats[2]?.title === 'Rivers');
    await until(() => focused() === 'Rivers');
    await press('Delete');
    await until(() => focused() === 'Chat 2');
    expect(network.chats).toHaveLength(2);
    await press('z', { metaKey: true });
    await until(() => network.chats.length === 3);
  });

  it('opens and hides with the keyboard, in a narrow window over the chat', async () => {
    browser({ narrow: true });
    await open(1, false);
    screen.getByTestId('sidebar-show').focus();
    await fireEvent.click(screen.getByTestId('sidebar-show'));
    await until(() => document.activeElement === screen.queryByTestId('sidebar-hide'));
    await press('Escape');
    await until(() => document.activeElement === screen.queryByTestId('sidebar-show'));
    expect(screen.queryByTestId('sidebar-hide')).toBeNull();
  });

  it('shows an error without it, too, until that is closed', async () => {
    await open(1);
    network.override = ({ method }) =>
      method === 'DELETE' ? refusal(507, 'storage', 'the disk is full') : null;
    await chats.remove('c1');
    await until(() => screen.queryByText('The disk is full.'));
    await fireEvent.click(screen.getByTestId('sidebar-hide'));
    expect((await screen.findByTestId('error-banner')).textContent).toContain('The disk is full.');
    await fireEvent.click(screen.getByTestId('sidebar-show'));
    await fireEvent.click(await screen.findByTestId('chats-problem-close'));
    await until(() => screen.queryByText('The disk is full.') === null);
    expect(screen.queryByTestId('error-banner')).toBeNull();
  });

  it('gives the focus to the composer once a deletion is undone', async () => {
    await open(1);
    await chats.remove('c1');
    const undo = await screen.findByTestId('undo');
    undo.focus();
    await fireEvent.click(undo);
    await until(
      () => network.chats.length === 1 && document.activeElement === screen.getByTestId('composer'),
    );
  });

  it('has no item but chats and their headings', async () => {
    await open(1);
    const list = screen.getByRole('list', { name: 'Chats' });
    expect([...list.children].map((child) => child.getAttribute('role'))).toEqual([null, null]);
  });

  it('keeps a chat deleted after Escape', async () => {
    await open(1);
    opener('Chat 1').focus();
    await press('Backspace');
    await until(() => screen.queryByTestId('undo'));
    await press('Escape');
    await until(() => screen.queryByTestId('undo') === null);
    expect(network.chats).toHaveLength(0);
  });

  it('lets a deletion be undone for ten seconds, and while the button has the focus', async () => {
    await open(1);
    opener('Chat 1').focus();
    vi.useFakeTimers();
    try {
      await chats.remove('c1');
      const pass = (seconds: number) => vi.advanceTimersByTimeAsync(seconds * 1000);
      await pass(9);
      screen.getByTestId('undo').focus();
      await pass(60);
      screen.getByTestId('undo').blur();
      await pass(9);
      expect(screen.queryByTestId('undo')).toBeTruthy();
      await pass(2);
      expect(screen.queryByTestId('undo')).toBeNull();
    } finally {
      vi.useRealTimers();
    }
  });

  it('pins with the menu', async () => {
    await open(2);
    const item = screen.getAllByTestId('chat-item')[1] as HTMLElement;
    await fireEvent.click(within(item).getByTestId('chat-menu'));
    await fireEvent.click(within(item).getByText('Pin'));
    await screen.findByText('Pinned');
    expect(screen.getAllByTestId('chat-item')[0]?.textContent).toContain('Chat 1');
    await until(() => document.activeElement?.closest('[data-chat-id]')?.textContent?.includes('Chat 1'));
  });

  it('exports with the menu, and says where the file is in the app', async () => {
    const saved: string[] = [];
    vi.stubGlobal('URL', Object.assign(URL, { createObjectURL: () => 'blob:x', revokeObjectURL: () => {} }));
    const click = vi.spyOn(HTMLAnchorElement.prototype, 'click').mockImplementation(function (
      this: HTMLAnchorElement,
    ) {
      saved.push(this.download);
    });
    platform.savesQuietly = true;
    await open(1);
    await fireEvent.click(screen.getByTestId('chat-menu'));
    await fireEvent.click(screen.getByTestId('chat-export-json'));
    await until(() => saved.length === 1);
    expect(saved).toEqual(['Chat 1.json']);
    await screen.findByText('Saved “Chat 1.json” in Downloads.');
    delete platform.savesQuietly;
    click.mockRestore();
  });

  it('is searched with the keyboard, and marks what was found', async () => {
    await open(2);
    await press('f', { metaKey: true });
    const field = screen.getByTestId<HTMLInputElement>('search');
    await until(() => document.activeElement === field);
    await fireEvent.input(field, { target: { value: 'chat 1' } });
    await until(() => screen.getAllByTestId('chat-item').length === 1);
    expect([...document.querySelectorAll('mark')].map(({ textContent }) => textContent)).toEqual([
      'Chat',
      '1',
    ]);
    expect(screen.getByText('1 chat found')).toBeTruthy();
    await fireEvent.keyDown(field, { key: 'Enter' });
    await until(() => chats.current.id === 'c1');
    await fireEvent.input(field, { target: { value: 'nothing' } });
    await screen.findByText('No chats match.');
    await fireEvent.keyDown(field, { key: 'Escape' });
    await until(() => screen.getAllByTestId('chat-item').length === 2);
    await fireEvent.keyDown(field, { key: 'ArrowDown' });
    await until(() => focused() === 'Chat 2');
  });

  it('reports what an import brought', async () => {
    await open(0);
    network.imported = {
      chats: 1,
      messages: 2,
      known: 3,
      left_out: [{ what: 'images', count: 1, why: 'the file has none' }],
    };
    const files = [new File(['{}'], 'a.json')];
    await fireEvent.change(screen.getByTestId('import-files'), { target: { files } });
    const report = await screen.findByTestId('import-report');
    expect(report.textContent).toContain('Imported 1 Chat');
    expect(report.textContent).toContain('2 messages were added.');
    expect(report.textContent).toContain('3 chats were already here.');
    expect(report.textContent).toContain('1 image: the file has none');
    await fireEvent.click(screen.getByText('Done'));
    expect(screen.queryByTestId('import-report')).toBeNull();
  });
});

describe('the address', () => {
  it('names the open chat, which a reload opens again', async () => {
    history.replaceState(null, '', '/#chat=c2');
    await open(3);
    await until(() => chats.current.id === 'c2');
    expect(location.hash).toBe('#chat=c2');
    await fireEvent.click(opener('Chat 3'));
    await until(() => location.hash === '#chat=c3');
    await press('n', { ctrlKey: true });
    await until(() => location.hash === '');
    expect(chats.current.id).toBeNull();
  });

  it('of a chat that was deleted opens a new one', async () => {
    history.replaceState(null, '', '/#chat=gone');
    await open(1);
    await until(() => location.hash === '');
    expect(chats.current.id).toBeNull();
    expect(screen.queryByTestId('error-banner')).toBeNull();
  });
});

it('marks what would reverse a title', async () => {
  await open(1);
  network.chats[0] = { ...(network.chats[0] as (typeof network.chats)[0]), title: 'photo\u202egnp.exe' };
  void chats.refresh();
  await until(() => screen.getByTestId('chat-item').querySelector('.direction') !== null);
  expect(screen.getByTestId('chat-item').querySelector('.open')?.getAttribute('title')).toContain('[U+202E]');
});

describe('the palette', () => {
  const options = () =>
    screen.getAllByRole('option', { hidden: true }).map(({ textContent }) => textContent?.trim() ?? '');
  const input = () => screen.getByTestId<HTMLInputElement>('palette-input');

  it('opens with ⌘K, finds a chat and opens it', async () => {
    await open(30);
    await press('k', { metaKey: true });
    await screen.findByTestId('palette');
    expect(options()[0]).toMatch(/^New Chat/);
    await fireEvent.input(input(), { target: { value: 'cht17' } });
    expect(options()[0]).toMatch(/^Chat 17/);
    await fireEvent.keyDown(input(), { key: 'Enter' });
    await until(() => chats.current.id === 'c17');
    expect(screen.queryByTestId('palette')).toBeNull();
  });

  it('names the key of a new chat in the app alone', async () => {
    await open(0);
    const commands = {
      newChat() {},
      open() {},
      search() {},
      find() {},
      importChats() {},
      toggleSidebar() {},
    };
    const keys = (platform: Platform) => paletteEntries({ ...app, platform }, chats, commands)[0]?.keys;
    expect(keys(platform)).toBeUndefined();
    expect(keys({ ...platform, closePopover: async () => {} })).toMatch(/N$/);
  });

  it('names the selected option, which arrows move', async () => {
    await open(0);
    await press('k', { ctrlKey: true });
    await screen.findByTestId('palette');
    await fireEvent.keyDown(input(), { key: 'ArrowDown' });
    await fireEvent.keyDown(input(), { key: 'ArrowDown' });
    await fireEvent.keyDown(input(), { key: 'ArrowUp' });
    const selected = document.querySelector('[aria-selected="true"]');
    expect(input().getAttribute('aria-activedescendant')).toBe(selected?.id);
    expect(selected?.textContent).toContain('Search Chats');
    await fireEvent.keyDown(input(), { key: 'ArrowUp' });
    await fireEvent.keyDown(input(), { key: 'ArrowUp' });
    expect(document.querySelector('[aria-selected="true"]')?.textContent?.trim()).toBe(options().at(-1));
  });

  it('chooses and unloads tiers, and opens settings', async () => {
    await open(0);
    const choose = async (query: string) => {
      await press('k', { metaKey: true });
      await screen.findByTestId('palette');
      await fireEvent.input(input(), { target: { value: query } });
      await fireEvent.keyDown(input(), { key: 'Enter' });
    };
    await choose('use primary');
    await until(() => chats.current.model === 'primary');
    await choose('unload primary');
    await until(() => network.sent('POST', '/tierbar/v1/tiers/primary/stop').length === 1);
    await choose('settings monitor');
    await until(() => vi.mocked(platform.openSettings).mock.lastCall?.[0] === 'monitor');
    await choose('pause');
    await until(() => network.sent('POST', '/tierbar/v1/pause').length === 1);
  });
});

import { fireEvent, render, screen } from '@testing-library/svelte';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { type App, startApp } from '../../lib/app';
import type { ChatMessage } from '../../platform/openapi';
import { browser } from '../../testing/browser';
import { Network, STATUS, until } from '../../testing/host';
import { Chats } from './chats.svelte';
import Root from './Root.svelte';

let network: Network;
let app: App;
let chats: Chats;

const NO_FACTS = {
  tier: null,
  model: null,
  why: null,
  instead_of: null,
  decode_tokens_per_second: null,
  time_to_first_token_ms: null,
  times: null,
  experts: null,
  context: null,
  left_out: null,
};

beforeEach(() => {
  network = new Network();
  browser();
});
afterEach(() => {
  app.feed.stop();
  chats.leave();
});

/** A chat of so many questions, of which each tenth has an answer with the word. */
function chat(id: string, count: number): void {
  const messages: ChatMessage[] = [];
  for (let number = 1; number <= count; number += 1) {
    const text = number % 10 === 0 ? `The **Rhône** number ${number}` : `Answer ${number}`;
    const [question, answer] = [2 * number - 1, 2 * number];
    messages.push(
      {
        id: question,
        parent: number === 1 ? null : question - 1,
        role: 'user',
        parts: [{ type: 'text', text: `Question ${number}` }],
        finish: null,
        ...NO_FACTS,
      },
      {
        id: answer,
        parent: question,
        role: 'assistant',
        parts: [{ type: 'text', text }],
        finish: 'stop',
        ...NO_FACTS,
      },
    );
  }
  const at = '2026-01-01T00:00:00Z';
  network.chats.push({
    id,
    title: `Chat ${id}`,
    model: 'auto',
    created_at: at,
    updated_at: at,
    when_full: 'refuse',
    pinned: false,
    instructions: '',
    sampling: {},
    thinking: null,
    turn: null,
    leaf: 2 * count,
    messages,
  });
}

async function open() {
  app = startApp({ connection: async () => ({ url: '' }), openSettings: vi.fn(), openChat: vi.fn() });
  chats = new Chats({ api: app.api });
  render(Root, { app, chats });
  await until(() => network.eventStreams.length === 1);
  network.eventStreams[0]?.event('snapshot', STATUS);
  await screen.findAllByTestId('chat-item');
}

const shows = (text: string) => () =>
  screen.queryByText((_, element) => element?.textContent === text && element.tagName === 'P');

it('finds a phrase in messages that are not drawn', async () => {
  chat('c1', 200);
  await open();
  await fireEvent.click(screen.getByRole('button', { name: 'Chat c1' }));
  await until(() => screen.queryAllByTestId('message-user').length > 0);
  expect(shows('The Rhône number 100')()).toBeNull();
  await fireEvent.keyDown(document.body, { key: 'f', metaKey: true });
  const field = await screen.findByTestId('find-input');
  await fireEvent.input(field, { target: { value: 'rhone number' } });
  const count = () => screen.getByTestId('find-count').textContent?.trim();
  await until(() => /of 20$/.test(count() ?? ''));
  for (let step = 0; step < 20 && !count()?.startsWith('10 '); step += 1)
    await fireEvent.keyDown(field, { key: 'Enter' });
  await until(shows('The Rhône number 100'));
  await fireEvent.keyDown(field, { key: 'Enter', shiftKey: true });
  expect(count()).toBe('9 of 20');
  await fireEvent.input(field, { target: { value: 'nowhere' } });
  expect(count()).toBe('No messages');
  await fireEvent.keyDown(field, { key: 'Escape' });
  expect(screen.queryByTestId('find-bar')).toBeNull();
  expect(document.activeElement).toBe(screen.getByTestId('composer'));
});

it('opens a chat at the message that a search has found, on its branch', async () => {
  chat('c1', 100);
  const stored = network.chats[0];
  // The word is in a version that is not shown.
  if (stored)
    stored.messages.push({
      id: 500,
      parent: 99,
      role: 'assistant',
      parts: [{ type: 'text', text: 'The Danube' }],
      finish: 'stop',
      ...NO_FACTS,
    });
  await open();
  await fireEvent.keyDown(document.body, { key: 'F', metaKey: true, shiftKey: true });
  const field = await screen.findByTestId('search');
  expect(document.activeElement).toBe(field);
  await fireEvent.input(field, { target: { value: 'danube' } });
  await until(() => chats.found?.length === 1);
  await fireEvent.keyDown(field, { key: 'Enter' });
  await until(shows('The Danube'));
  expect(chats.current.turns).toHaveLength(50);
  expect(network.requests.some(({ method }) => method === 'PATCH')).toBe(false);
});

it('reads a long list of chats in pages', async () => {
  for (let number = 1; number <= 450; number += 1) chat(`c${number}`, 0);
  await open();
  const listed = () => network.requests.filter(({ path }) => path.startsWith('/tierbar/v1/chats?limit'));
  expect([chats.list.length, chats.total, chats.hasMore]).toEqual([200, 450, true]);
  await chats.more();
  await chats.more();
  expect([chats.list.length, chats.hasMore]).toEqual([450, false]);
  expect(new Set(chats.list.map(({ id }) => id)).size).toBe(450);
  await chats.more();
  expect(listed()).toHaveLength(3);
  // What was read stays, and what is new comes on top.
  chat('new', 0);
  await chats.refresh();
  expect([chats.list.length, chats.list[0]?.id]).toEqual([451, 'new']);
  // A chat that was deleted elsewhere does not stay.
  network.chats = network.chats.filter(({ id }) => id !== 'c3');
  await chats.refresh();
  expect([chats.list.length, chats.hasMore]).toEqual([200, true]);
});

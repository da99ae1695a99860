import { cleanup, fireEvent, render, screen, within } from '@testing-library/svelte';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type App, startApp } from '../../lib/app';
import type { FilesDragged, Platform } from '../../platform';
import type { ChainStatus, Chat, ChatMessage, TierStatus } from '../../platform/openapi';
import { browser } from '../../testing/browser';
import { Network, type RunningTurn, refusal, STATUS, until } from '../../testing/host';
import { account, localModel } from '../../testing/models';
import { Chats } from './chats.svelte';
import { COMMANDS } from './commands';
import { readDraft } from './drafts';
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
afterEach(() => app.feed.stop());

function start() {
  app = startApp(platform);
  chats = new Chats({ api: app.api });
  render(Root, { app, chats });
}

async function open() {
  start();
  await until(() => network.eventStreams.length === 1);
  network.eventStreams[0]?.event('snapshot', STATUS);
  await screen.findByTestId('composer');
}

const NIGHTLY: ChainStatus = {
  name: 'nightly',
  triage: false,
  steps: [
    { step: 'sonnet', server: 'api.example.com', gate: 'open' },
    { step: 'primary' },
    { step: 'queue' },
  ],
};

const composer = () => screen.getByTestId<HTMLTextAreaElement>('composer');

async function type(text: string) {
  await fireEvent.input(composer(), { target: { value: text } });
}

async function ask(text: string): Promise<RunningTurn> {
  const before = network.turns.length;
  await type(text);
  await fireEvent.keyDown(composer(), { key: 'Enter' });
  await until(() => network.turns.length > before);
  return network.turns.at(-1) as RunningTurn;
}

describe('the chat page', () => {
  it('describes what answers, and puts an example into the composer', async () => {
    await open();
    expect(screen.getByTestId('empty-state').textContent).toContain('Everyday is loaded.');
    await fireEvent.click(screen.getByText(/five names/));
    expect(composer().value).toContain('five names');
    expect(network.turns).toHaveLength(0);
  });

  it('says that a model without a chat template is no chat model', async () => {
    network.models = [localModel('gemma', { account: account({ chat_template: false }) })];
    await open();
    expect(screen.queryByTestId('not-a-chat-model')).toBeNull();
    await chats.current.choose('primary');
    const note = await screen.findByTestId('not-a-chat-model');
    expect(note.textContent).toContain('gemma isn’t a chat model.');
    await chats.current.choose('fast');
    await until(() => screen.queryByTestId('not-a-chat-model') === null);
  });

  it('shows the tools that an answer used, folded', async () => {
    await open();
    const turn = await ask('Hello?');
    turn.words('Hi');
    turn.finish('stop', 1);
    await until(() => screen.queryByTestId('send'));
    network.chats[0]?.messages[1]?.parts.unshift(
      { type: 'tool_call', id: '1', name: 'web_search', arguments: '{"query":"<b>Rhône</b>"}' },
      { type: 'tool_result', id: '1', text: '<script>alert(1)</script>', failed: false },
    );
    await chats.current.open('c1');
    const tool = await screen.findByTestId<HTMLDetailsElement>('tool');
    expect(tool.querySelector('summary')?.textContent?.trim()).toBe('Searched the web for “<b>Rhône</b>”');
    expect(tool.open).toBe(false);
    expect([...tool.querySelectorAll('code')].map(({ textContent }) => textContent)).toEqual([
      'web_search',
      '{\n  "query": "<b>Rhône</b>"\n}',
      '<script>alert(1)</script>',
    ]);
    expect(tool.querySelector('script, b')).toBeNull();
  });

  it('undoes what an agent changed in files, by force only if asked again', async () => {
    await open();
    const turn = await ask('Mend it');
    turn.words('Done.');
    turn.finish('stop', 1);
    await until(() => screen.queryByTestId('send'));
    const message = network.chats[0]?.messages[1];
    message?.parts.unshift(
      { type: 'tool_call', id: '1', name: 'edit_file', arguments: '{"path":"a.py"}' },
      { type: 'tool_result', id: '1', text: 'a.py is not text', failed: true },
    );
    await chats.current.open('c1');
    await screen.findByTestId('tool');
    expect(screen.queryByTestId('undo-changes'), 'nothing was changed').toBeNull();
    message?.parts.unshift(
      { type: 'tool_call', id: '0', name: 'write_file', arguments: '{"path":"a.py"}' },
      { type: 'tool_result', id: '0', text: 'a.py is written', failed: false },
    );
    await chats.current.open('c1');
    const undo = await screen.findByTestId('undo-changes');
    const forced: unknown[] = [];
    network.override = ({ method, path, body }) => {
      if (path.endsWith('/agent/runs'))
        return Response.json({
          runs: [
            { id: 'other', chat: null, message: null, folder: '/toy', at: 2, files: ['b.py'] },
            { id: 'run', chat: 'c1', message: message?.id, folder: '/toy', at: 1, files: ['a.py'] },
          ],
        });
      if (method !== 'POST' || !path.endsWith('/agent/runs/run/undo')) return null;
      const { force } = body as { force: boolean };
      forced.push(force);
      if (!force) return refusal(409, 'conflict', 'changed or deleted since: a.py; nothing was undone');
      return forced.length < 3
        ? refusal(507, 'storage', 'not undone: a.py is a folder now')
        : Response.json({ files: ['a.py'] });
    };
    await fireEvent.click(within(undo).getByText('Undo File Changes'));
    const again = await within(undo).findByText('Undo Anyway');
    expect(within(undo).getByRole('alert').textContent).toContain('a.py; nothing was undone');
    await fireEvent.click(again);
    await within(undo).findByText(/a folder now/);
    await fireEvent.click(within(undo).getByText('Undo Anyway'));
    expect((await within(undo).findByRole('status')).textContent).toBe('Undone: a.py');
    expect(forced).toEqual([false, true, true]);
    expect(within(undo).queryByRole('button')).toBeNull();
  });

  it('grades this answer, with why, and undoes that', async () => {
    await open();
    const turn = await ask('Hello?');
    turn.words('Hi');
    await until(() => screen.queryByTestId('message-assistant'));
    expect(screen.queryByTestId('grade-good'), 'before it is whole').toBeNull();
    turn.finish('stop', 1);
    const bad = await screen.findByTestId('grade-bad');
    const stored = () => network.chats[0]?.messages[1]?.grade;
    await fireEvent.click(bad);
    await until(() => stored()?.verdict === 'bad');
    const why = await screen.findByTestId('grade-why');
    await fireEvent.input(why, { target: { value: 'Too short.' } });
    await fireEvent.submit(why.closest('form') as HTMLFormElement);
    await until(() => stored()?.why === 'Too short.');
    expect((await screen.findByTestId('grade-reason')).textContent).toBe('“Too short.”');
    expect(bad.getAttribute('aria-pressed')).toBe('true');
    await fireEvent.click(bad);
    await until(() => stored() === undefined);
    expect(bad.getAttribute('aria-pressed')).toBe('false');
    await type('/good Clear.');
    await fireEvent.keyDown(composer(), { key: 'Enter' });
    await until(() => stored()?.verdict === 'good' && stored()?.why === 'Clear.');
    network.override = ({ path }) =>
      path.endsWith('/grade') ? refusal(507, 'storage', 'the disk is full') : null;
    await fireEvent.click(screen.getByTestId('grade-good'));
    expect((await screen.findByTestId('grade-refused')).textContent).toBe('The disk is full.');
    expect(screen.getByTestId('grade-good').getAttribute('aria-pressed')).toBe('true');
  });

  it('shows an answer with its figures', async () => {
    await open();
    const stream = await ask('Hello?');
    expect(screen.getByTestId('message-user').textContent).toContain('Hello?');
    expect(screen.queryByTestId('send')).toBeNull();
    stream.words('**Hi**');
    await until(() => screen.getByTestId('message-assistant').querySelector('strong')?.textContent === 'Hi');
    stream.finish('stop', 41.23);
    await until(() => screen.queryByTestId('send'));
    expect(screen.getByTestId('answer-stats').textContent).toMatch(
      /Fast\s*smol\s*41\.2 tok\/s\s*\d+ ms to first token/,
    );
    expect(screen.getAllByTestId('chat-item')).toHaveLength(1);
  });

  it('shows reasoning as it comes, then folded, outside of what is read out', async () => {
    await open();
    const turn = await ask('Hello?');
    turn.thoughts('Hm. ');
    turn.thoughts('A greeting.', 11_600);
    const shown = () => screen.queryByTestId<HTMLDetailsElement>('reasoning');
    await until(() => screen.queryByTestId('reasoning-tail')?.textContent === 'Hm. A greeting.');
    expect(shown()?.querySelector('summary')?.textContent).toMatch(/^Thinking… \d+ s$/);
    expect(shown()?.open).toBe(false);
    for (const id of ['reasoning', 'reasoning-tail'])
      expect(screen.getByTestId(id).closest('[aria-live]')).toBeNull();
    expect(screen.getByText('Thinking…').closest('[aria-live]')).toBeTruthy();
    turn.words('Hi', 12_300);
    await until(() => screen.queryByTestId('reasoning-tail') === null);
    turn.times = { load_ms: null, prefill_ms: null, decode_ms: 14_000, thinking_ms: 12_300 };
    turn.finish('stop', 1);
    await until(() => screen.queryByTestId('send'));
    expect(shown()?.textContent).toContain('Hm. A greeting.');
    expect(shown()?.querySelector('summary')?.textContent).toBe('Thought for 12 s');
    expect(screen.queryByText('Thinking…')).toBeNull();
  });

  it('shows reasoning that a server left in the text apart from the answer', async () => {
    await open();
    const turn = await ask('Hello?');
    for (const piece of ['<th', 'ink>', 'A greet', 'ing.']) turn.words(piece, 1000);
    await until(() => screen.queryByTestId('reasoning-tail')?.textContent === 'A greeting.');
    turn.words('</think>Hi', 3000);
    turn.times = { load_ms: null, prefill_ms: null, decode_ms: 4000, thinking_ms: 3000 };
    turn.finish('stop', 1);
    await until(() => screen.queryByTestId('send'));
    const answer = screen.getByTestId('message-assistant');
    expect(answer.querySelector('.markdown')?.textContent?.trim()).toBe('Hi');
    expect(screen.getByTestId('reasoning').textContent).toContain('Thought for 3 s');
  });

  it('says how an answer ended early', async () => {
    await open();
    const turn = await ask('Hello?');
    turn.words('Hi');
    turn.finish('length', 1);
    expect((await screen.findByTestId('answer-ending')).textContent).toBe('Reached the length limit.');
    const other = await ask('And?');
    other.words('Hm');
    other.fail('unreachable', 'the server broke off');
    const problem = await screen.findByTestId('error-banner');
    expect(problem.textContent).toContain('The connection to Fast dropped. The answer so far is kept.');
    expect(problem.textContent).toContain('The server broke off.');
    // One card for one event.
    expect(screen.getAllByTestId('answer-ending')).toHaveLength(1);
    const third = await ask('Still there?');
    expect(screen.queryByTestId('error-banner')).toBeNull();
    expect(screen.getAllByTestId('answer-ending')[1]?.textContent).toBe(
      'Interrupted. The answer so far is kept. The server broke off.',
    );
    third.finish('stop', 1);
  });

  it('keeps why a question before the last one has no answer', async () => {
    await open();
    const turn = await ask('Hello?');
    turn.fail('over_budget', 'it does not fit', 'choose a smaller one');
    await screen.findByTestId('error-banner');
    expect(screen.queryByTestId('no-answer')).toBeNull();
    const next = await ask('And now?');
    expect(screen.getByTestId('no-answer').textContent).toBe(
      'No answer. It does not fit. Choose a smaller one.',
    );
    next.words('Hi');
    next.finish('stop', 1);
    await until(() => screen.queryByTestId('send'));
    expect(screen.getByTestId('no-answer').textContent).toContain('It does not fit.');
    // The host keeps it, also for other windows.
    chats.current.messages = [];
    await chats.current.open(chats.current.id as string);
    await until(() => screen.queryByTestId('no-answer')?.textContent?.includes('It does not fit.'));
  });

  it('mounts only the last turns of a chat of 5,000 messages, below its title', async () => {
    await open();
    const turn = await ask('Hello?');
    turn.finish('stop', 1);
    await until(() => screen.queryByTestId('send'));
    const chat = network.chats[0] as Chat;
    const [question, answer] = chat.messages as [ChatMessage, ChatMessage];
    chat.messages = Array.from({ length: 5000 }, (_, index) => ({
      ...(index % 2 === 0 ? question : answer),
      id: index + 1,
      parent: index === 0 ? null : index,
      parts: [{ type: 'text', text: `**Message** ${index + 1}` }],
    }));
    chat.leaf = 5000;
    chat.updated_at = '2026-01-02T00:00:00Z';
    chat.title = 'A long chat';
    network.eventStreams[0]?.event('chats', { revision: 2 });
    await screen.findByText('5000', { exact: false });
    expect(screen.getByRole('heading', { level: 1 }).textContent).toBe('A long chat');
    expect(chats.current.turns).toHaveLength(2500);
    expect(screen.getAllByTestId('message-assistant').length).toBeLessThan(60);
    expect(document.querySelectorAll('*').length).toBeLessThan(2500);
    expect(screen.getByText('Show earlier messages')).toBeTruthy();
    expect(screen.queryByText('Show later messages')).toBeNull();
  });

  it('lets the keyboard scroll what is too wide, and wraps code', async () => {
    vi.spyOn(HTMLElement.prototype, 'scrollWidth', 'get').mockReturnValue(900);
    await open();
    const turn = await ask('Hello?');
    turn.words('```js\na\n```\n\n| a |\n|---|\n| b |\n');
    turn.finish('stop', 1);
    await until(() => screen.queryByTestId('send'));
    for (const name of ['Code', 'Table']) expect(screen.getByRole('group', { name }).tabIndex).toBe(0);
    const wrap = screen.getByRole('button', { name: 'Wrap long lines' });
    vi.spyOn(HTMLElement.prototype, 'scrollWidth', 'get').mockReturnValue(0);
    await fireEvent.click(wrap);
    expect(wrap.getAttribute('aria-pressed')).toBe('true');
    expect(screen.getByRole('group', { name: 'Code' }).hasAttribute('tabindex')).toBe(false);
  });

  it('asks before it opens a link', async () => {
    await open();
    const turn = await ask('Hello?');
    turn.words('See [this](https://example.com/a?b=1).');
    turn.finish('stop', 1);
    await until(() => screen.queryByTestId('send'));
    const opened: string[] = [];
    vi.spyOn(HTMLAnchorElement.prototype, 'click').mockImplementation(function (this: HTMLAnchorElement) {
      opened.push(`${this.href} ${this.target} ${this.rel}`);
    });
    await fireEvent.click(screen.getByText('this'));
    const dialog = within(screen.getByRole('dialog', { name: 'Open this link?' }));
    expect(dialog.getByText('https://example.com/a?b=1')).toBeTruthy();
    await fireEvent.click(dialog.getByText('Cancel'));
    expect(opened).toEqual([]);
    await fireEvent.click(screen.getByText('this'));
    await fireEvent.click(screen.getByText('Open Link'));
    expect(opened).toEqual(['https://example.com/a?b=1 _blank noopener noreferrer']);
  });

  it('says what experts on disk have cost', async () => {
    await open();
    const turn = await ask('Hello?');
    turn.words('Hi');
    turn.experts = {
      hit_rate: 0.949,
      read_bytes: 31_600_000,
      wait_ms: 40,
      tokens: 10,
      layers: false,
      approximated: { changed: 0.031, lost_weight: 0.01 },
    };
    turn.finish('stop', 12);
    await until(() => screen.queryByTestId('send'));
    expect(screen.getByTestId('answer-stats').textContent).toContain(
      '94 % of experts in memory3 MB read and 4 ms waited per tokenapproximate: 4 % of experts replaced or left out',
    );
  });

  it('shows which step of a chain answered instead, and why', async () => {
    await open();
    await chats.current.choose('nightly');
    const stream = await ask('Hello?');
    stream.event({
      type: 'started',
      tier: 'primary',
      model: 'gemma',
      why: 'sonnet: overloaded; heavy: over_budget',
      instead_of: 'sonnet',
    });
    stream.words('Hi');
    stream.finish('stop', 41.23);
    await until(() => screen.queryByTestId('send'));
    const facts = screen.getByTestId('answer-stats');
    expect(facts.textContent).toMatch(/^Everyday, instead of sonnet\s*gemma\s*41\.2 tok\/s/);
    expect(screen.getByText('Everyday, instead of sonnet').title).toBe(
      'sonnet: overloaded; heavy: over_budget',
    );
    expect(network.messages('c1')[1]).toMatchObject({ tier: 'primary', model: 'gemma' });
  });

  it('shows no replacement when the first step of a chain answered', async () => {
    await open();
    const stream = await ask('Hello?');
    stream.event({ type: 'started', tier: 'sonnet', model: 'claude', why: null, instead_of: null });
    stream.words('Hi');
    stream.finish('stop', 41.23);
    await until(() => screen.queryByTestId('send'));
    expect(screen.getByTestId('answer-stats').textContent).toMatch(/^sonnet\s*claude/);
    expect(screen.getByText('sonnet').title).toBe('');
  });

  it('sends with Enter, but not with Shift+Enter nor while an input method composes', async () => {
    await open();
    await type('Hello?');
    await fireEvent.keyDown(composer(), { key: 'Enter', shiftKey: true });
    await fireEvent.keyDown(composer(), { key: 'Enter', isComposing: true });
    await fireEvent.keyDown(composer(), { key: 'Enter', keyCode: 229 });
    expect(chats.current.messages).toHaveLength(0);
    await fireEvent.keyDown(composer(), { key: 'Enter' });
    expect(chats.current.messages).toHaveLength(1);
    expect(composer().value).toBe('');
    await until(() => network.turns.length === 1);
    network.turns[0]?.finish('stop', 1);
  });

  it.each([
    ['the button', () => fireEvent.click(screen.getByTestId('stop'))],
    ['Escape', () => fireEvent.keyDown(composer(), { key: 'Escape' })],
  ])('stops with %s and marks what is left', async (_name, stop) => {
    await open();
    const stream = await ask('Hello?');
    stream.words('Once');
    await screen.findByText('Once');
    await stop();
    expect(document.activeElement).toBe(composer());
    expect((await screen.findByTestId('answer-ending')).textContent).toContain('Stopped');
    expect(stream.ended).toBe(true);
  });

  it('shows how full the context is, and lets the user choose what happens then', async () => {
    await open();
    for (const [answer_tokens, shown] of [
      [8, null],
      [312, 'Context 60 % full: 712 of 1,186 tokens.'],
      [1224, 'This chat nearly fills the context: 1,624 of 2,000 tokens.'],
    ] as const) {
      const turn = await ask('Hello?');
      turn.words('Hi');
      turn.context = {
        prompt_tokens: 400,
        answer_tokens,
        context_tokens: answer_tokens > 1000 ? 2000 : 1186,
      };
      turn.finish('stop', 1);
      await until(() => screen.queryByTestId('send'));
      const text = screen.queryByTestId('context-meter')?.textContent ?? null;
      if (shown === null) expect(text).toBeNull();
      else expect(text).toContain(shown);
      expect(screen.queryByTestId('when-full') === null).toBe(shown === null);
    }
    await fireEvent.change(screen.getByTestId('when-full'), { target: { value: 'summarize' } });
    await until(() => network.chats[0]?.when_full === 'summarize');
    expect(network.sent('PATCH', '/tierbar/v1/chats/c1')[0]?.body).toEqual({ when_full: 'summarize' });
  });

  it('answers a chat past its context with the choice of a button, and says so', async () => {
    await open();
    const first = await ask('One?');
    first.words('1');
    first.finish('stop', 1);
    await until(() => screen.queryByTestId('send'));
    const failed = await ask('Two?');
    expect(failed.request.body).not.toHaveProperty('when_full');
    failed.fail('context_length_exceeded', '600 tokens do not fit 512', 'Leave out messages.');
    await fireEvent.click(await screen.findByText('Summarize Oldest Messages'));
    await until(() => network.turns.length === 3);
    const turn = network.turns[2] as RunningTurn;
    expect(turn.request.body).toMatchObject({ when_full: 'summarize' });
    expect(turn.request.body).not.toHaveProperty('text');
    turn.event({ type: 'progress', stage: 'summarize' });
    await screen.findByText('Summarizing the oldest messages…');
    turn.fail('context_length_exceeded', 'the oldest messages cannot be summarized');
    expect(await screen.findByTestId('when-full-drop')).toBeTruthy();
    expect(screen.queryByTestId('when-full-summarize')).toBeNull();

    await fireEvent.click(screen.getByText('Leave Out Oldest Messages'));
    await until(() => network.turns.length === 4);
    const dropped = network.turns[3] as RunningTurn;
    dropped.leftOut = { messages: 2, through: 2, summary: null, fallback: false };
    dropped.event({ type: 'left_out', ...dropped.leftOut });
    await screen.findByText('Answered without the oldest 2 messages.');
    dropped.words('2');
    dropped.finish('stop', 1);
    await until(() => screen.queryByTestId('send'));
    expect(screen.getByTestId('left-out').textContent).toContain('without the oldest 2 messages');
    expect(network.chats[0]?.when_full).toBe('drop');
  });

  it('shows a summary of the oldest messages on request', async () => {
    await open();
    const turn = await ask('Hello?');
    turn.words('Hi');
    turn.leftOut = { messages: 1, through: 2, summary: 'They counted.', fallback: true };
    turn.finish('stop', 1);
    await until(() => screen.queryByTestId('send'));
    const shown = screen.getByTestId<HTMLDetailsElement>('left-out');
    expect(shown.open).toBe(false);
    expect(shown.textContent).toMatch(/The oldest message was summarized by rule\.\s*They counted\./);
  });

  it('shows the API’s error, and retries', async () => {
    await open();
    network.override = ({ path }) =>
      path.endsWith('/turns')
        ? refusal(400, 'context_length_exceeded', '5,000 tokens do not fit 4,096.', 'Set `context` higher.')
        : null;
    await type('Hello?');
    await fireEvent.click(screen.getByTestId('send'));
    const banner = await screen.findByTestId('error-banner');
    expect(banner.textContent).toContain('5,000 tokens do not fit 4,096.');
    expect(banner.textContent).toContain('Set context higher.');
    expect(banner.querySelector('code')?.textContent).toBe('context');
    network.override = () => null;
    await fireEvent.click(within(banner).getByTestId('retry'));
    await until(() => network.turns.length === 1);
    expect(screen.queryByTestId('error-banner')).toBeNull();
    network.turns[0]?.words('Hi');
    network.turns[0]?.finish('stop', 1);
    await screen.findByTestId('answer-stats');
  });

  it('pages through the answers to one question', async () => {
    await open();
    const first = await ask('Hello?');
    first.words('Hi');
    first.finish('stop', 1);
    await fireEvent.click(await screen.findByTestId('regenerate'));
    await fireEvent.click(await screen.findByTestId('regenerate-again'));
    await until(() => network.turns.length === 2);
    network.turns[1]?.words('Good day');
    network.turns[1]?.finish('stop', 1);
    await screen.findByLabelText('Answer 2 of 2');
    await fireEvent.click(screen.getByLabelText('Previous answer'));
    expect(screen.getByTestId('message-assistant').textContent).toContain('Hi');
  });

  it('answers again with another tier, once', async () => {
    await open();
    const first = await ask('Hello?');
    first.words('Hi');
    first.finish('stop', 1);
    await fireEvent.click(await screen.findByTestId('regenerate'));
    expect(screen.getAllByRole('menuitem').map((item) => item.textContent?.trim())).toEqual([
      'Again',
      'With Fast',
      'With Everyday',
    ]);
    await fireEvent.click(screen.getByTestId('regenerate-primary'));
    await until(() => network.turns.length === 2);
    expect(network.turns[1]?.request.body).toMatchObject({ model: 'primary' });
    network.turns[1]?.finish('stop', 1);
    await until(() => screen.queryByTestId('send'));
    expect(chats.current.model).toBe('auto');
    expect(network.chats[0]?.model).toBe('auto');
  });

  it('continues an answer that reached its limit in the same message', async () => {
    await open();
    const first = await ask('Hello?');
    first.words('Once upon');
    first.finish('length', 1);
    await fireEvent.click(await screen.findByTestId('continue'));
    await until(() => network.turns.length === 2);
    const second = network.turns[1] as RunningTurn;
    const { id } = network.messages('c1')[0] as { id: number };
    expect(document.activeElement).toBe(composer());
    expect(second.request.body).toEqual({ continue: true, parent: id + 1 });
    second.words(' a time');
    await until(() => screen.getByTestId('message-assistant').textContent?.includes('Once upon a time'));
    expect(screen.queryByTestId('continue')).toBeNull();
    second.finish('stop', 1);
    await until(() => screen.queryByTestId('send'));
    expect(screen.getAllByTestId('message-assistant')).toHaveLength(1);
    expect(screen.queryByTestId('continue')).toBeNull();
    expect(chats.current.messages).toHaveLength(2);
  });

  it('says that an answer repeated itself, and offers to continue', async () => {
    await open();
    const first = await ask('Hello?');
    first.words('I am sorry. I am sorry.');
    first.finish('repetition', 1);
    const ending = await screen.findByTestId('answer-ending');
    expect(ending.textContent).toContain('Stopped: the answer repeated itself.');
    expect(screen.getByTestId('continue')).toBeTruthy();
  });

  it('says that an agent has used no tool', async () => {
    await open();
    const first = await ask('Hello?');
    first.words('The author is Alex.');
    first.finish('no_step', 1);
    const ending = await screen.findByTestId('answer-ending');
    expect(ending.textContent).toContain('Answered without using a tool.');
    expect(screen.queryByTestId('continue')).toBeNull();
  });

  it('offers to continue no answer of another server’s', async () => {
    start();
    await until(() => network.eventStreams.length === 1);
    const tiers = STATUS.tiers.map((tier) => ({ ...tier, engine: 'endpoint' as const }));
    network.eventStreams[0]?.event('snapshot', { ...STATUS, tiers });
    await screen.findByTestId('composer');
    const first = await ask('Hello?');
    first.words('Once upon');
    first.finish('length', 1);
    await screen.findByTestId('answer-ending');
    expect(screen.queryByTestId('continue')).toBeNull();
  });

  it('sends files that were pasted, dropped or picked, and shows them at the question', async () => {
    await open();
    const notes = new File(['Buy milk.'], 'notes.txt', { type: 'text/plain' });
    await fireEvent.paste(composer(), { clipboardData: { files: [notes] } });
    await screen.findByText('notes.txt');
    const picture = new File(['x'], 'cat.png', { type: 'image/png' });
    await fireEvent.drop(window, { dataTransfer: { types: ['Files'], files: [picture] } });
    await screen.findByText('cat.png');
    expect(screen.getByTestId('file-trouble').textContent).toContain('No tier accepts images.');
    expect(screen.getByTestId<HTMLButtonElement>('send').disabled).toBe(true);
    await fireEvent.click(screen.getByTestId('trouble-models'));
    expect(platform.openSettings).toHaveBeenLastCalledWith('models');
    await fireEvent.click(screen.getByLabelText('Remove cat.png'));
    expect(screen.queryByTestId('file-trouble')).toBeNull();
    const turn = await ask('');
    expect(turn.request.body).toMatchObject({
      text: '',
      parts: [{ type: 'file', name: 'notes.txt', media_type: 'text/plain', text: 'Buy milk.' }],
    });
    turn.finish('stop', 1);
    await until(() => screen.queryByTestId('send'));
    expect(screen.getByTestId('message-user').textContent).toContain('notes.txt');
    await fireEvent.click(screen.getByTestId('edit-question'));
    const edited = await ask('Why?');
    expect(edited.request.body.parts).toEqual([{ type: 'stored', sha256: 'h-notes.txt' }]);
    edited.finish('stop', 1);
  });

  it('tells what of a document is missing, and why one cannot be read', async () => {
    await open();
    const notice = '1 of 2 pages is damaged and is not read: page 2.';
    const refusal = { code: 'bad_request', message: 'b.bin cannot be read: This file holds no text' };
    network.override = ({ method, path }) => {
      if (method !== 'POST' || !path.startsWith('/tierbar/v1/documents/text')) return null;
      if (path.endsWith('?name=plan%20b.pdf')) return Response.json({ text: 'One', notice });
      return Response.json({ error: refusal }, { status: 400 });
    };
    const files = ['plan b.pdf', 'b.bin'].map((name) => new File(['x'], name));
    await fireEvent.paste(composer(), { clipboardData: { files } });
    const told = await screen.findByTestId('file-trouble');
    expect(told.textContent?.trim()).toBe('b.bin cannot be read: This file holds no text.');
    expect(screen.getByTestId('file-notice').textContent).toBe(`plan b.pdf: ${notice}`);
    const turn = await ask('What is planned?');
    expect(turn.request.body).toMatchObject({ parts: [{ type: 'file', name: 'plan b.pdf', text: 'One' }] });
    expect(screen.queryByTestId('file-notice')).toBeNull();
    turn.finish('stop', 1);
  });

  it('searches in what was dropped in the app, or attaches it', async () => {
    let drag = (_: FilesDragged) => {};
    const inApp = {
      onFilesDropped: async (call: typeof drag) => {
        drag = call;
        return () => {};
      },
      dropped: {
        folders: vi.fn(async () => ['/d/Papers']),
        read: async (path: string) => {
          if (path.endsWith('gone.txt')) return Promise.reject('gone.txt can’t be read.');
          return new TextEncoder().encode('Buy milk.').buffer;
        },
      },
    };
    Object.assign(platform, inApp);
    try {
      network.override = ({ method, path }) =>
        method === 'POST' && path === '/tierbar/v1/documents' ? Response.json({}) : null;
      await open();
      drag({ type: 'drop', paths: ['/d/Papers'] });
      await fireEvent.click(await screen.findByTestId('dropped-search'));
      await screen.findByTestId('dropped-documents');
      expect(network.sent('POST', '/tierbar/v1/documents').map(({ body }) => body)).toEqual([
        { path: '/d/Papers', collection: null },
      ]);
      await fireEvent.click(screen.getByTestId('dropped-close'));
      inApp.dropped.folders.mockResolvedValue([]);
      drag({ type: 'drop', paths: ['/d/notes.txt', '/d/gone.txt'] });
      await fireEvent.click(await screen.findByTestId('dropped-attach'));
      await screen.findByText('notes.txt');
      await until(() =>
        screen.queryByTestId('file-trouble')?.textContent?.includes('gone.txt can’t be read.'),
      );
      expect(screen.queryByTestId('dropped')).toBeNull();
      drag({ type: 'drop', paths: ['/d/cat.PNG'] });
      await screen.findByText('cat.PNG');
      expect(screen.queryByTestId('dropped')).toBeNull();
    } finally {
      for (const key of Object.keys(inApp)) Reflect.deleteProperty(platform, key);
    }
  });

  it('completes and runs commands, and tells unknown ones', async () => {
    await open();
    await type('/');
    expect(screen.getAllByRole('option')).toHaveLength(COMMANDS.length);
    await type('/export');
    await fireEvent.keyDown(composer(), { key: 'Enter' });
    expect(screen.getByTestId('command-note').textContent).toBe('There is nothing to export yet.');
    await type('/mo');
    await fireEvent.keyDown(composer(), { key: 'Tab' });
    expect(composer().value).toBe('/model ');
    await fireEvent.keyDown(composer(), { key: 'ArrowDown' });
    expect(screen.getByRole('option', { selected: true }).textContent).toContain('fast');
    await fireEvent.keyDown(composer(), { key: 'Enter' });
    expect([chats.current.model, composer().value]).toEqual(['fast', '']);
    expect(screen.getByTestId('command-note').textContent).toBe('From now on, Fast answers.');
    await type('/dance');
    await fireEvent.keyDown(composer(), { key: 'Enter' });
    expect(screen.getByTestId('command-note').textContent).toContain('There is no command /dance.');
    const turn = await ask('//dance');
    expect(turn.request.body.text).toBe('/dance');
    turn.words('No.');
    turn.finish('stop', 1);
    await until(() => screen.queryByTestId('send'));
    await type('/continue');
    await fireEvent.keyDown(composer(), { key: 'Enter' });
    expect(screen.getByTestId('command-note').textContent).toBe('The last answer is complete.');
    await type('/clear my desk');
    await fireEvent.keyDown(composer(), { key: 'Enter' });
    expect(screen.getByTestId('command-note').textContent).toContain('/clear takes no words.');
    expect(screen.queryByTestId('message-user')).not.toBeNull();
    expect(composer().value).toBe('/clear my desk');
    await type('/clear');
    await fireEvent.keyDown(composer(), { key: 'Enter' });
    expect(screen.queryByTestId('message-user')).toBeNull();
    const over = await ask('Sing.');
    expect(over.request.body.parent).toBeNull();
    over.finish('stop', 1);
    await until(() => screen.queryByTestId('send'));
    expect(screen.getByLabelText('Question 2 of 2')).toBeTruthy();
  });

  it('edits a question in the composer, and pages through its versions', async () => {
    await open();
    const first = await ask('Hello?');
    first.words('Hi');
    first.finish('stop', 1);
    await until(() => screen.queryByTestId('send'));
    await type('Half a');
    await fireEvent.click(screen.getByTestId('edit-question'));
    expect(composer().value).toBe('Hello?');
    expect(screen.getByTestId('editing').textContent).toContain('Editing');
    await fireEvent.keyDown(composer(), { key: 'Escape' });
    expect([composer().value, screen.queryByTestId('editing')]).toEqual(['Half a', null]);
    await type('');
    await fireEvent.keyDown(composer(), { key: 'ArrowUp' });
    expect(composer().value).toBe('Hello?');
    const second = await ask('Hello there?');
    expect(second.request.body).toEqual({ text: 'Hello there?', model: 'auto', parent: null });
    second.words('Hey');
    second.finish('stop', 1);
    await until(() => screen.queryByTestId('send'));
    expect(screen.getByLabelText('Question 2 of 2')).toBeTruthy();
    expect(screen.getAllByTestId('message-user')).toHaveLength(1);
    await fireEvent.click(screen.getByLabelText('Previous question'));
    expect(screen.getByTestId('message-user').textContent).toContain('Hello?');
    expect(screen.getByTestId('message-assistant').textContent).toContain('Hi');
  });

  it('branches into a chat of its own name, with the focus in the composer', async () => {
    await open();
    const turn = await ask('Hello?');
    turn.words('Hi');
    turn.finish('stop', 1);
    const button = await screen.findByTestId('fork');
    button.focus();
    await fireEvent.click(button);
    await until(() => network.chats[1]?.title === 'Hello? (branch)');
    await until(() => chats.current.id === network.chats[1]?.id && document.activeElement === composer());
  });

  it('renames in place, deletes and undoes that', async () => {
    await open();
    const stream = await ask('Hello?');
    stream.finish('stop', 1);
    await until(() => screen.queryByTestId('send'));
    await fireEvent.click(screen.getByTestId('chat-menu'));
    await fireEvent.click(screen.getByTestId('chat-rename'));
    const title = screen.getByTestId('chat-title-input');
    await fireEvent.input(title, { target: { value: 'Greetings' } });
    await fireEvent.keyDown(title, { key: 'Enter' });
    await until(() => screen.getByTestId('chat-item').textContent?.includes('Greetings'));
    await fireEvent.click(screen.getByTestId('chat-menu'));
    await fireEvent.click(screen.getByTestId('chat-delete'));
    await until(() => screen.queryByTestId('chat-item') === null);
    expect(network.chats).toHaveLength(0);
    expect(screen.getByTestId('empty-state')).toBeTruthy();
    expect(screen.getByTestId('done').textContent).toContain('Deleted “Greetings”.');
    await fireEvent.click(screen.getByTestId('undo'));
    await until(() => screen.queryByTestId('chat-item'));
    // The chat was shown, and is again.
    await until(() => screen.queryByTestId('message-user'));
    expect(screen.queryByTestId('undo')).toBeNull();
  });
});

describe('the tier picker', () => {
  it('chooses without loading; the next message goes to the tier', async () => {
    await open();
    await fireEvent.click(screen.getByTestId('tier-picker'));
    expect(screen.getByTestId('tier-option-fast').dataset.state).toBe('stopped');
    const before = network.requests.length;
    await fireEvent.click(screen.getByTestId('tier-option-primary'));
    expect(network.requests).toHaveLength(before);
    expect(screen.queryByTestId('tier-option-fast')).toBeNull();
    const stream = await ask('Hello?');
    expect(stream.request.body.model).toBe('primary');
    stream.finish('stop', 1);
  });

  it('lists chains under their own heading', async () => {
    await open();
    await fireEvent.click(screen.getByTestId('tier-picker'));
    expect(screen.queryByRole('heading', { name: 'Chains' })).toBeNull();
    await fireEvent.click(screen.getByTestId('tier-picker'));

    network.chains = [NIGHTLY];
    await fireEvent.click(screen.getByTestId('tier-picker'));
    await screen.findByRole('heading', { name: 'Chains' });
    await fireEvent.click(screen.getByTestId('chain-option-nightly'));
    expect(screen.getByTestId('tier-picker').getAttribute('aria-label')).toBe(
      'Chain: nightly, sonnet, then Everyday, then the queue',
    );
    expect(screen.getByTestId('empty-state').textContent).toContain(
      'nightly tries sonnet, then Everyday, then the queue until one answers.',
    );
    const stream = await ask('Hello?');
    expect(stream.request.body.model).toBe('nightly');
    stream.finish('stop', 1);
  });

  it('shows that a tier was removed once the chains are known', async () => {
    network.override = ({ path }) => (path.endsWith('/chains') ? refusal(500, 'internal', 'x') : null);
    await open();
    await chats.current.choose('nightly');
    const label = () => screen.getByTestId('tier-picker').getAttribute('aria-label');
    await until(() => app.chains.problem && label()?.startsWith('Tier: nightly'));
    expect(label()).not.toContain('removed');
    network.override = () => null;
    await fireEvent.click(screen.getByTestId('tier-picker'));
    await until(() => label() === 'Tier: nightly, removed');
  });

  it('loads and unloads a tier, and shows why that was refused', async () => {
    await open();
    network.override = ({ path }) =>
      path.endsWith('/start') ? refusal(503, 'over_budget', 'It does not fit.') : null;
    await fireEvent.click(screen.getByTestId('tier-picker'));
    await fireEvent.click(screen.getByTestId('tier-start-fast'));
    await screen.findByText('It does not fit.');
    network.override = ({ path }) => (path.endsWith('/stop') ? Response.json({}) : null);
    await fireEvent.click(screen.getByTestId('tier-stop-primary'));
    await until(() => network.sent('POST', '/tierbar/v1/tiers/primary/stop').length === 1);
    expect(network.requests.at(-1)?.body).toEqual({ force: false });
  });

  it('offers to interrupt the answers that delay an unload', async () => {
    await open();
    network.override = ({ path }) => (path.endsWith('/stop') ? Response.json({}) : null);
    await fireEvent.click(screen.getByTestId('tier-picker'));
    network.eventStreams[0]?.event('change', {
      tiers: STATUS.tiers.map((tier) => (tier.id === 'primary' ? { ...tier, state: 'stopping' } : tier)),
    });
    await fireEvent.click(await screen.findByRole('button', { name: 'Unload Everyday now' }));
    await until(() => network.sent('POST', '/tierbar/v1/tiers/primary/stop').length === 1);
    expect(network.requests.at(-1)?.body).toEqual({ force: true });
  });

  it('closes on Escape, and returns the focus', async () => {
    await open();
    await fireEvent.click(screen.getByTestId('tier-picker'));
    await until(() => document.activeElement === screen.getByTestId('tier-option-auto'));
    await fireEvent.keyDown(document.activeElement as Element, { key: 'ArrowDown' });
    expect(document.activeElement).toBe(screen.getByTestId('tier-option-fast'));
    await fireEvent.keyDown(document.activeElement as Element, { key: 'Escape' });
    expect(screen.queryByTestId('tier-option-fast')).toBeNull();
    expect(document.activeElement).toBe(screen.getByTestId('tier-picker'));
  });
});

describe('the status', () => {
  it('shows the host’s figures, and follows them', async () => {
    await open();
    expect(screen.getByTestId('strip-ram').textContent).toContain('7 GB of 16 GB');
    expect(screen.getByTestId('strip-speed').textContent).toContain('–');
    expect(screen.getByTestId('strip-tier').textContent).toContain('Everyday');
    network.eventStreams[0]?.event('change', {
      ram: { ...STATUS.ram, pressure: 'critical' },
      swap: { used_bytes: 2 ** 30, growth_bytes_per_minute: 2 ** 20 * 64 },
      speed: { decode_tokens_per_second: 12.3, prefill_tokens_per_second: null },
      tiers: [],
      notices: ['An unknown key is ignored.'],
    });
    await screen.findByText('An unknown key is ignored.');
    expect(screen.getByTestId('strip-ram').dataset.pressure).toBe('critical');
    expect(screen.getByTestId('strip-swap').textContent).toMatch(/1 GB\s*\+64 MB\/min/);
    expect(screen.getByTestId('strip-speed').textContent).toContain('12.3 tok/s');
    expect(screen.getByTestId('strip-tier').textContent).toContain('no model loaded');
  });

  it('shows an alarm with its figures, and a pause with a button to resume', async () => {
    await open();
    const guard = (change: Partial<typeof STATUS.guard>) =>
      network.eventStreams[0]?.event('change', { guard: { ...STATUS.guard, ...change } });
    guard({ alarm: 'hold', why: 'memory is about to run out: 0.3 GB are available' });
    expect((await screen.findByTestId('alarm')).textContent).toContain('Memory is about to run out: 0.3 GB');
    guard({
      stance: 'paused',
      why: 'Tierbar is paused',
      paused_until: new Date('2026-01-01T17:59:00').getTime(),
    });
    const banner = await screen.findByTestId('paused');
    expect(banner.textContent).toContain('Paused until 17:59.');
    expect(screen.queryByTestId('alarm')).toBeNull();
    await fireEvent.click(within(banner).getByText('Resume'));
    await until(() => network.sent('POST', '/tierbar/v1/resume').length === 1);
    guard({});
    await until(() => screen.queryByTestId('paused') === null);
  });

  it('shows one model unload before the other loads', async () => {
    await open();
    const [fast, primary] = STATUS.tiers as [TierStatus, TierStatus];
    const change = (tiers: TierStatus[]) => network.eventStreams[0]?.event('change', { tiers });
    const shares = () => STATUS.tiers.map(({ id }) => screen.getByTestId(`memory-share-${id}`).dataset.state);
    const row = (id: string) => screen.getByTestId(`memory-tier-${id}`).textContent?.replace(/\s+/g, ' ');
    expect(shares()).toEqual(['gone', 'ready']);
    await fireEvent.click(screen.getByTestId('strip-ram'));
    const panel = within(screen.getByRole('dialog', { name: 'Memory' }));
    const bar = () => panel.getByTestId('memory-bar').ariaLabel;
    // The panel covers the status bar's.
    const state = (id: string) => panel.getByTestId(`memory-share-${id}`).dataset.state;
    expect(panel.getByTestId('plan-primary').textContent).toMatch(/Weights\s*1 GB.*Tierbar\s*256 MB/s);

    change([
      { ...fast, reason: 'waits until the memory of primary is back' },
      { ...primary, state: 'stopping', reason: 'unloaded to make room for fast' },
    ]);
    await until(() => state('primary') === 'stopping');
    expect(state('fast')).toBe('gone');
    expect(bar()).toContain('Everyday 1 GB used of 2 GB planned (Unloading…)');
    expect(row('fast')).toContain('Waits until the memory of primary is back.');
    expect(row('primary')).toContain('Unloaded to make room for fast.');

    const plan = primary.plan;
    change([
      { ...fast, state: 'starting', pid: 8, plan, loaded_percent: 40 },
      { ...primary, state: 'stopped', pid: null, footprint_bytes: null, plan: null },
    ]);
    await until(() => state('fast') === 'starting');
    expect(state('primary')).toBe('gone');
    expect(panel.getByTestId('memory-share-fast').querySelector<HTMLElement>('.ahead')?.style.left).toBe(
      '40%',
    );
    expect(panel.queryByTestId('plan-primary')).toBeNull();
    expect(row('fast')).toContain('Loading, 40 %');
    expect(bar()).not.toContain('primary');

    await fireEvent.keyDown(screen.getByTestId('memory-panel'), { key: 'Escape' });
    expect(screen.queryByTestId('memory-panel')).toBeNull();
    expect(document.activeElement).toBe(screen.getByTestId('strip-ram'));
  });

  it('loads a tier while its first message is typed', async () => {
    await open();
    await chats.current.choose('fast');
    await type('Hel');
    await type('Hello');
    await until(() => network.sent('POST', '/tierbar/v1/expect').length === 1);
    expect(network.sent('POST', '/tierbar/v1/expect')[0]?.body).toEqual({ model: 'fast' });
    expect(network.turns).toHaveLength(0);
  });

  it('shows when the connection is lost, and when it is back', async () => {
    await open();
    network.eventStreams[0]?.breakOff();
    const banner = await screen.findByTestId('connection-banner');
    await fireEvent.click(within(banner).getByText('Try Now'));
    await until(() => network.eventStreams.length === 2);
    network.eventStreams[1]?.event('snapshot', STATUS);
    await until(() => screen.queryByTestId('connection-banner') === null);
  });

  it('sends a message again that was lost with the host, and shows one banner meanwhile', async () => {
    await open();
    network.override = () => Promise.reject(new TypeError('Failed to fetch'));
    network.eventStreams[0]?.breakOff();
    await screen.findByTestId('connection-banner');
    await type('Hello?');
    await fireEvent.click(screen.getByTestId('send'));
    await screen.findByTestId('sends-again');
    expect(screen.queryByTestId('error-banner')).toBeNull();
    await type('A draft');
    network.override = () => null;
    await fireEvent.click(screen.getByText('Try Now'));
    await until(() => network.eventStreams.length === 2);
    network.eventStreams[1]?.event('snapshot', STATUS);
    await until(() => network.turns.length === 1);
    expect(network.turns[0]?.request.body.text).toBe('Hello?');
    network.turns[0]?.finish('stop', 1);
    await until(() => screen.queryByTestId('sends-again') === null);
    expect(composer().value).toBe('A draft');
  });

  it('keeps what is typed, by chat, for a page that is opened later', async () => {
    await open();
    const turn = await ask('Hello?');
    turn.finish('stop', 1);
    await until(() => screen.queryByTestId('send'));
    await type('Half a thought');
    window.dispatchEvent(new Event('pagehide'));
    const id = chats.current.id as string;
    expect(readDraft(id)).toBe('Half a thought');
    expect(readDraft(null)).toBe('');
    cleanup();
    app.feed.stop();
    history.replaceState(null, '', '/');
    start();
    await until(() => network.eventStreams.length === 2);
    network.eventStreams[1]?.event('snapshot', STATUS);
    await screen.findByTestId('composer');
    expect(composer().value).toBe('');
    await chats.open(id);
    await until(() => composer().value === 'Half a thought');
    await fireEvent.click(screen.getByTestId('send'));
    await until(() => network.turns.length === 2);
    network.turns[1]?.finish('stop', 1);
    await until(() => readDraft(id) === '');
  });

  it('names the server that refuses, its wait, and a tier to ask instead', async () => {
    await open();
    const [fast, primary] = STATUS.tiers;
    const cloud = { ...fast, id: 'cloud', engine: 'endpoint' };
    network.eventStreams[0]?.event('change', { tiers: [fast, primary, cloud] });
    const turn = await ask('Hello?');
    turn.fail('overloaded', 'rate limited', null, { tier: 'cloud', retry_after_seconds: 30 });
    const problem = await screen.findByTestId('error-banner');
    expect(problem.textContent).toContain('cloud did not answer: Rate limited.');
    const retry = await within(problem).findByTestId<HTMLButtonElement>('retry');
    expect(retry.textContent?.trim()).toMatch(/^Try Again in \d+ s$/);
    expect(retry.disabled).toBe(true);
    expect(screen.queryByTestId('open-servers')).toBeNull();
    const instead = await within(problem).findByTestId('ask-instead');
    expect(instead.textContent).toBe('Ask Everyday Instead');
    await fireEvent.click(instead);
    await until(() => network.turns.length === 2);
    expect(network.turns[1]?.request.body.model).toBe('primary');
    // Refused before it began: nothing names the tier.
    network.turns[1]?.finish('stop', 1);
    await until(() => screen.queryByTestId('send'));
    await chats.current.choose('cloud');
    const refused = await ask('And now?');
    refused.fail('unreachable', 'the endpoint did not accept the key');
    await screen.findByTestId('open-servers');
    expect(screen.getByTestId('ask-instead').textContent).toBe('Ask Everyday Instead');
  });
});

describe('the token', () => {
  it('is requested once, refused if wrong, and opens the page', async () => {
    network.override = ({ path, headers }) => {
      if (path !== '/tierbar/v1/session') return refusal(401, 'unauthorized', 'This needs the token.');
      return headers.get('authorization') === 'Bearer right'
        ? new Response(null, { status: 204, headers: { 'x-tierbar-session': 'half' } })
        : refusal(401, 'unauthorized', 'Wrong token.');
    };
    start();
    const input = await screen.findByTestId<HTMLInputElement>('token-input');
    expect(screen.queryByTestId('composer')).toBeNull();
    await fireEvent.input(input, { target: { value: 'wrong' } });
    await fireEvent.click(screen.getByTestId('token-submit'));
    await screen.findByTestId('token-error');
    await fireEvent.input(input, { target: { value: ' right\n' } });
    const asked = network.override;
    network.override = (request) => (request.path === '/tierbar/v1/session' ? asked(request) : null);
    await fireEvent.click(screen.getByTestId('token-submit'));
    await until(() => network.eventStreams.length === 1);
    network.eventStreams[0]?.event('snapshot', STATUS);
    await screen.findByTestId('composer');
    expect(screen.queryByTestId('token-input')).toBeNull();
  });

  it('signs in with the code of a link, and takes it out of the address', async () => {
    location.hash = '#code=once-1';
    network.override = ({ path }) =>
      path === '/tierbar/v1/session'
        ? new Response(null, { status: 204, headers: { 'x-tierbar-session': 'half' } })
        : null;
    start();
    expect(location.hash).toBe('');
    await until(() => network.eventStreams.length === 1);
    const [begun] = network.sent('POST', '/tierbar/v1/session');
    expect(begun?.headers.get('authorization')).toBe('Bearer once-1');
    network.eventStreams[0]?.event('snapshot', STATUS);
    await screen.findByTestId('composer');
  });

  it('asks for the token where a link was used before', async () => {
    location.hash = '#code=used';
    network.override = () => refusal(401, 'unauthorized', 'This needs the token.');
    start();
    expect((await screen.findByTestId('token-error')).textContent).toContain('The link was used before');
    await fireEvent.input(screen.getByTestId('token-input'), { target: { value: 'wrong' } });
    await fireEvent.click(screen.getByTestId('token-submit'));
    await screen.findByText('The token is incorrect.');
  });

  it('shows a chat and its turn of another window at once', async () => {
    await open();
    await until(() => screen.queryByTestId('composer'));
    const other = new Chats({ api: app.api });
    const done = other.current.send('From elsewhere');
    await until(() => network.turns.length === 1);
    expect(screen.queryByText('From elsewhere')).toBeNull();
    network.eventStreams[0]?.event('chats', { revision: 1 });
    await fireEvent.click(await screen.findByText('From elsewhere'));
    await until(() => network.turns[0]?.followers.length === 2);
    network.turns[0]?.words('The first words');
    await screen.findByText('The first words');
    network.turns[0]?.finish('stop', 1);
    await done;
  });
});

import { fireEvent, render, screen } from '@testing-library/svelte';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { startApp } from '../../lib/app';
import { Api } from '../../lib/http';
import type { AgentGrant, ConsentQuestion } from '../../platform/openapi';
import { browser } from '../../testing/browser';
import { Network, type RunningTurn, STATUS, until } from '../../testing/host';
import AgentBar from './AgentBar.svelte';
import { describeStep } from './agent';
import Consent from './Consent.svelte';
import { Chats } from './chats.svelte';
import { Conversation } from './conversation.svelte';
import Root from './Root.svelte';

const QUESTION: ConsentQuestion = {
  id: 'q1',
  act: 'write',
  title: 'Change this file?',
  summary: '4 lines',
  what: 'src/a.py',
  diff: '--- a/src/a.py\n+++ b/src/a.py\n-old\n+new\n',
  folder: '/work',
  scopes: ['once', 'folder'],
};

describe('the card', () => {
  beforeEach(() => browser());

  it('shows all of what is to happen, and allows nothing at once or by Enter', async () => {
    vi.useFakeTimers();
    const onanswer = vi.fn(async () => {});
    render(Consent, { question: QUESTION, onanswer });
    expect(screen.getByTestId('consent-what').textContent).toBe('src/a.py');
    expect(screen.getByTestId('consent-diff').textContent).toContain('+new');
    const once = screen.getByTestId<HTMLButtonElement>('consent-once');
    expect(screen.queryByTestId('consent-exact')).toBeNull();
    expect(document.activeElement).toBe(document.body);
    await fireEvent.click(once);
    expect(once.disabled).toBe(true);
    await vi.advanceTimersByTimeAsync(700);
    expect(once.disabled).toBe(false);
    const enter = new KeyboardEvent('keydown', { key: 'Enter', bubbles: true, cancelable: true });
    once.dispatchEvent(enter);
    expect(enter.defaultPrevented).toBe(true);
    expect(onanswer).not.toHaveBeenCalled();
    await fireEvent.click(once);
    expect(onanswer).toHaveBeenCalledExactlyOnceWith('once');
    vi.useRealTimers();
  });

  it('says that all commands of a folder can change hidden files', () => {
    const scopes: ConsentQuestion['scopes'] = ['once', 'folder', 'exact'];
    const command = {
      ...QUESTION,
      act: 'command' as const,
      title: 'Run this command?',
      what: 'make',
      diff: null,
      scopes,
    };
    const { unmount } = render(Consent, { question: command, onanswer: async () => {} });
    const all = screen.getByTestId('consent-folder');
    expect(all.textContent).toBe('Allow All Commands Here');
    expect(all.title).toContain('.envrc and Git hooks');
    expect(screen.getByTestId('consent-exact').textContent).toBe('Always Allow This');
    unmount();
    render(Consent, { question: QUESTION, onanswer: async () => {} });
    expect(screen.getByTestId('consent-folder').textContent).toBe('Allow in This Folder');
  });

  it('repeats what is asked next to the buttons, and how long it is', () => {
    render(Consent, { question: QUESTION, onanswer: async () => {} });
    expect(screen.getByTestId('consent-summary').textContent).toBe('Change this file? (4 lines)');
  });

  it('can be allowed once the end of all its text was in view', async () => {
    vi.useFakeTimers();
    const long = (name: string, value: number) =>
      vi.spyOn(HTMLElement.prototype, name as 'clientHeight', 'get').mockReturnValue(value);
    long('clientHeight', 260);
    long('scrollHeight', 2000);
    const onanswer = vi.fn(async () => {});
    render(Consent, { question: QUESTION, onanswer });
    const once = screen.getByTestId<HTMLButtonElement>('consent-once');
    const scroll = async (id: string, to: number) => {
      const box = screen.getByTestId(id);
      box.scrollTop = to;
      await fireEvent.scroll(box);
    };
    await vi.advanceTimersByTimeAsync(700);
    expect(once.disabled).toBe(true);
    expect(screen.getByTestId('consent-unread')).toBeTruthy();
    await scroll('consent-what', 1740);
    await scroll('consent-diff', 900);
    expect(once.disabled).toBe(true);
    await scroll('consent-diff', 1740);
    expect(once.disabled).toBe(false);
    expect(screen.queryByTestId('consent-unread')).toBeNull();
    // Back at the beginning, it has been seen.
    await scroll('consent-diff', 0);
    await fireEvent.click(once);
    expect(onanswer).toHaveBeenCalledExactlyOnceWith('once');
    vi.useRealTimers();
  });

  it('can be refused at once', async () => {
    const onanswer = vi.fn(async () => {});
    render(Consent, { question: QUESTION, onanswer });
    await fireEvent.click(screen.getByTestId('consent-refuse'));
    expect(onanswer).toHaveBeenCalledExactlyOnceWith(null);
  });
});

describe('a turn that acts', () => {
  let network: Network;
  let chat: Conversation;
  beforeEach(() => {
    network = new Network();
    chat = new Conversation({
      api: new Api(async () => ({ url: '', token: 't0' })),
      onSummary: () => {},
    });
  });

  it('shows its question until it is answered, and its steps', async () => {
    chat.agent = '/work';
    const done = chat.send('Mend it');
    await until(() => network.turns.length === 1);
    const turn = network.turns[0] as RunningTurn;
    expect(turn.request.body.agent).toEqual({ folder: '/work', allow: { reading: true } });
    turn.event({ type: 'consent', question: QUESTION });
    await until(() => chat.live?.consent !== null && chat.live !== null);
    expect(chat.live?.consent).toEqual(QUESTION);
    await chat.consent('q1', 'once');
    expect(turn.consents).toEqual([{ id: 'q1', allow: 'once' }]);
    await until(() => chat.live?.consent === null);
    turn.event({ type: 'tool_call', id: 's1', name: 'write_file', arguments: '{"path":"src/a.py"}' });
    turn.event({ type: 'tool_result', id: 's1', text: 'written', failed: false });
    await until(() => chat.live?.steps[0]?.result === 'written');
    turn.finish('stop');
    await done;
    expect(chat.live).toBeNull();
  });

  it('measures its first word without the question before it', async () => {
    let now = 1000;
    vi.spyOn(performance, 'now').mockImplementation(() => now);
    chat.agent = '/work';
    const done = chat.send('Mend it');
    await until(() => network.turns.length === 1);
    const turn = network.turns[0] as RunningTurn;
    turn.event({ type: 'consent', question: QUESTION });
    await until(() => chat.live?.consent !== null && chat.live !== null);
    now = 61_000;
    turn.event({ type: 'consent_answered', id: 'q1', allow: null });
    await until(() => chat.live?.consent === null);
    now = 61_500;
    turn.event({ type: 'text', text: 'No.', tokens: 1, decode_ms: 0 });
    await until(() => chat.live?.text === 'No.');
    expect(chat.live?.firstTokenMs).toBe(500);
    vi.restoreAllMocks();
    turn.finish('stop');
    await done;
  });

  it('searches the documents and the web where that is chosen', async () => {
    chat.agent = '/work';
    render(AgentBar, { chat });
    await fireEvent.click(screen.getByTestId('agent-documents'));
    await fireEvent.change(screen.getByTestId('agent-web'), { target: { value: 'searxng' } });
    await fireEvent.input(screen.getByTestId('agent-address'), { target: { value: 'http://box:8080 ' } });
    void chat.send('Look');
    await until(() => network.turns.length === 1);
    expect((network.turns[0] as RunningTurn).request.body.agent).toEqual({
      folder: '/work',
      allow: { reading: true, known_pages: true },
      documents: true,
      search: 'http://box:8080',
      pages: true,
    });
  });

  it('lists what it may do, and takes it back', async () => {
    browser();
    let grants: AgentGrant[] = [
      {
        id: 'g1',
        title: 'Run this command',
        what: 'make test',
        folder: '/work',
        chat: null,
        since: 0,
        until: null,
      },
    ];
    network.override = ({ method, path }) => {
      if (!path.startsWith('/tierbar/v1/agent/grants')) return null;
      if (method === 'GET') return Response.json({ grants });
      grants = [];
      return new Response(null, { status: 204 });
    };
    const openWindow = vi.fn(async () => {});
    const app = startApp({
      connection: async () => ({ url: '' }),
      openSettings: openWindow,
      openChat: openWindow,
    });
    const chats = new Chats({ api: app.api });
    chats.current.agent = '/work';
    render(Root, { app, chats });
    await until(() => network.eventStreams.length === 1);
    network.eventStreams[0]?.event('snapshot', STATUS);
    await fireEvent.click(await screen.findByTestId('agent-permissions'));
    const grant = await screen.findByTestId('agent-grant');
    expect(grant.textContent).toContain('make test');
    expect(grant.textContent).toContain('In every chat, until you revoke it');
    await fireEvent.click(screen.getByTestId('agent-revoke'));
    await until(() => screen.queryByTestId('agent-grant') === null);
    expect(network.sent('DELETE', '/tierbar/v1/agent/grants/g1')).toHaveLength(1);
    expect(document.activeElement).toBe(screen.getByTestId('agent-grants'));
    app.feed.stop();
  });

  it('has the host check its folder when it is typed', async () => {
    browser();
    network.override = ({ path, body }) => {
      if (!path.endsWith('/tierbar/v1/agent/folder')) return null;
      const { folder } = body as { folder: string };
      if (folder === '~/toy') return Response.json({ folder: '/Users/ada/toy' });
      const error = { code: 'bad_request', message: `there is no folder ${folder}`, hint: 'create it' };
      return Response.json({ error }, { status: 400 });
    };
    const openWindow = vi.fn(async () => {});
    const app = startApp({
      connection: async () => ({ url: '' }),
      openSettings: openWindow,
      openChat: openWindow,
    });
    const chats = new Chats({ api: app.api });
    render(Root, { app, chats });
    await until(() => network.eventStreams.length === 1);
    network.eventStreams[0]?.event('snapshot', STATUS);
    const composer = await screen.findByTestId('composer');
    const type = async (value: string) => {
      await fireEvent.input(composer, { target: { value } });
      await fireEvent.click(screen.getByTestId('send'));
    };
    await type('/agent ~/toy');
    await until(() => chats.current.agent === '/Users/ada/toy');
    await type('/agent /nonexistent');
    expect((await screen.findByText(/There is no folder/)).textContent).toContain('/nonexistent');
    expect(chats.current.agent).toBe('/Users/ada/toy');
    expect(chats.current.draft).toBe('/agent /nonexistent');
    app.feed.stop();
  });

  it('describes its steps', () => {
    const step = { id: 's', result: null, failed: false };
    expect(describeStep({ ...step, name: 'run_command', arguments: '{"command":"make"}' })).toBe('Ran make');
    expect(describeStep({ ...step, name: 'list_files', arguments: 'x', result: '' })).toBe(
      'Listed the folder',
    );
    expect(describeStep({ ...step, name: 'mail__send', arguments: '{"to":"me"}' })).toBe('Used send of mail');
    expect(describeStep({ ...step, name: 'send', arguments: '{}' })).toBe('Used send');
  });
});

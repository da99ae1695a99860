import { fireEvent, render, screen } from '@testing-library/svelte';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { Api } from '../../lib/http';
import type { ConsentQuestion } from '../../platform/openapi';
import { Network, type RunningTurn, until } from '../../testing/host';
import { describeStep } from './agent';
import Consent from './Consent.svelte';
import { Conversation } from './conversation.svelte';

const QUESTION: ConsentQuestion = {
  id: 'q1',
  title: 'Change this file?',
  what: 'src/a.py',
  diff: '--- a/src/a.py\n+++ b/src/a.py\n-old\n+new\n',
  folder: '/work',
  scopes: ['once', 'folder'],
};

describe('the card', () => {
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

  it('describes its steps', () => {
    const step = { id: 's', result: null, failed: false };
    expect(describeStep({ ...step, name: 'run_command', arguments: '{"command":"make"}' })).toBe('Ran make');
    expect(describeStep({ ...step, name: 'read_file', arguments: 'x', result: '' })).toBe('Read the folder');
    const tool = { ...step, name: 'tool', arguments: '{"server":"mail","name":"send"}', result: '' };
    expect(describeStep(tool)).toBe('Used send of mail');
    expect(describeStep({ ...tool, arguments: '{"server":"mail"}' })).toBe('Connected to mail');
    expect(describeStep({ ...step, name: 'tool', arguments: '{"name":"send"}', result: '' })).toBe(
      'Used send',
    );
  });
});

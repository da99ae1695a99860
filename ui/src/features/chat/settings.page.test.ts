import { fireEvent, render, screen } from '@testing-library/svelte';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type App, startApp } from '../../lib/app';
import { browser } from '../../testing/browser';
import { Network, refusal, STATUS, until } from '../../testing/host';
import { Chats } from './chats.svelte';
import Root from './Root.svelte';

let network: Network;
let app: App;
let chats: Chats;

beforeEach(() => {
  network = new Network();
  browser();
});
afterEach(() => app.feed.stop());

async function open() {
  const openWindow = vi.fn(async () => {});
  app = startApp({ connection: async () => ({ url: '' }), openSettings: openWindow, openChat: openWindow });
  chats = new Chats({ api: app.api });
  chats.current.model = 'primary';
  render(Root, { app, chats });
  await until(() => network.eventStreams.length === 1);
  network.eventStreams[0]?.event('snapshot', STATUS);
  await screen.findByTestId('composer');
  await show();
}

async function show() {
  await fireEvent.click(screen.getByTestId('chat-settings'));
  await screen.findByTestId('chat-settings-dialog');
}

const field = (name: string) => screen.getByTestId<HTMLInputElement>(`chat-${name}`);
const change = (name: string, value: string) => fireEvent.change(field(name), { target: { value } });

async function ask() {
  const composer = screen.getByTestId('composer');
  await fireEvent.input(composer, { target: { value: 'Hello?' } });
  await fireEvent.keyDown(composer, { key: 'Enter' });
  await until(() => network.turns.length === 1);
  network.turns[0]?.finish('stop', 1);
  await until(() => screen.queryByTestId('send'));
  await show();
}

describe('chat settings', () => {
  it('go with a new chat, and change a stored one', async () => {
    await open();
    await change('instructions', 'Answer in German.');
    await change('temperature', '0.2');
    await ask();
    expect(network.sent('POST', '/tierbar/v1/chats')[0]?.body).toEqual({
      model: 'primary',
      instructions: 'Answer in German.',
      sampling: { temperature: 0.2 },
      thinking: null,
    });
    await change('max_tokens', '100');
    await change('temperature', '');
    await until(() => network.sent('PATCH', '/tierbar/v1/chats/c1').length === 2);
    expect(network.chats[0]?.sampling).toEqual({ max_tokens: 100 });
    await fireEvent.click(screen.getByTestId('chat-settings-reset'));
    await until(() => network.chats[0]?.instructions === '');
    await until(() => screen.getByTestId('chat-settings').getAttribute('aria-label') === 'Chat Settings');
  });

  it('show what the tier has as placeholders, and thinking where the model can', async () => {
    network.models = [
      {
        id: 'gemma',
        tiers: ['primary'],
        account: { thinking: true },
        sampling: { answer: { temperature: 1, top_k: 64 } },
      },
    ];
    network.config = { config: { tiers: { primary: { sampling: { top_k: 10 } } } } };
    await open();
    await until(() => field('temperature').placeholder === '1');
    expect([field('top_k').placeholder, field('min_p').placeholder]).toEqual(['10', '0.05']);
    await change('thinking', 'false');
    expect(chats.current.settings.thinking).toBe(false);
  });

  it('show a range where the tiers that may answer differ', async () => {
    network.models = [
      {
        id: 'gemma',
        tiers: ['primary'],
        account: { thinking: false },
        sampling: { answer: { temperature: 1 } },
      },
    ];
    await open();
    chats.current.model = 'auto';
    await until(() => field('temperature').placeholder === '0.8–1');
    expect(field('top_k').placeholder).toBe('40');
  });

  it('offer no thinking to a model that cannot', async () => {
    network.models = [{ id: 'gemma', tiers: ['primary'], account: { thinking: false } }];
    await open();
    await until(() => field('temperature').placeholder === '0.8');
    expect(screen.queryByTestId('chat-thinking')).toBeNull();
  });

  it('are saved as a preset, chosen and deleted', async () => {
    const settings = { instructions: 'Be brief.', sampling: {}, thinking: null };
    network.presets = [{ name: 'Brief', built_in: true, settings }];
    await open();
    await screen.findByText('Brief');
    await change('preset', 'Brief');
    expect(chats.current.settings).toEqual(settings);
    expect(screen.queryByTestId('preset-delete')).toBeNull();
    await change('temperature', '0.1');
    await fireEvent.click(await screen.findByTestId('preset-new'));
    await fireEvent.input(screen.getByTestId('preset-name'), { target: { value: 'Brief and exact' } });
    const area = screen.getByTestId('chat-instructions');
    await fireEvent.click(screen.getByTestId('preset-save'));
    await until(() => network.presets.length === 2 && document.activeElement === area);
    expect(network.presets[1]?.settings).toEqual({ ...settings, sampling: { temperature: 0.1 } });
    await fireEvent.click(await screen.findByTestId('preset-delete'));
    await until(() => network.presets.length === 1 && document.activeElement === area);
    screen.getByTestId('chat-settings-reset').focus();
    await fireEvent.click(screen.getByTestId('chat-settings-reset'));
    await until(() => document.activeElement === area);
  });

  it('take no value out of its range', async () => {
    await open();
    const report = vi.fn(() => false);
    field('temperature').reportValidity = report;
    await change('temperature', '-1');
    expect(report).toHaveBeenCalledOnce();
    expect(chats.current.settings.sampling).toEqual({});
    await change('temperature', '0.5');
    expect(chats.current.settings.sampling).toEqual({ temperature: 0.5 });
  });

  it('say why a value is refused', async () => {
    await open();
    await ask();
    network.override = ({ method }) =>
      method === 'PATCH' ? refusal(400, 'bad_request', 'sampling.top_p: this tier has none') : null;
    await change('top_p', '0.5');
    await screen.findByText('sampling.top_p: this tier has none.');
  });
});

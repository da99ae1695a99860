import { cleanup, render, screen } from '@testing-library/svelte';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { browser } from '../testing/browser';
import { configured, TIER } from '../testing/config';
import { Network, STATUS, until } from '../testing/host';
import { chooseLanguage, languageChoice, preferred, startLanguage, translate, translated } from './language';

describe('the language', () => {
  afterEach(() => localStorage.clear());

  it('is the first of the computer’s that there is, and English without one', () => {
    expect(preferred(['de-AT', 'en-US'])).toBe('de');
    expect(preferred(['nl', 'FR'])).toBe('fr');
    expect(preferred(['ja'])).toBe('en');
    expect(preferred([])).toBe('en');
  });

  it('is the chosen one until the choice is taken back', () => {
    chooseLanguage('fr');
    expect([languageChoice(), preferred(['de'])]).toEqual(['fr', 'fr']);
    chooseLanguage('auto');
    expect([languageChoice(), preferred(['de'])]).toEqual(['auto', 'de']);
    localStorage.setItem('tierbar-language', 'toString');
    expect(preferred(['de'])).toBe('de');
  });
});

describe('a text', () => {
  it('stays English where the catalog lacks it, with its values', async () => {
    await startLanguage('de');
    expect(translate('{0} of {1} without a translation', ['a', undefined])).toBe(
      'a of  without a translation',
    );
  });

  it('of the list of models is translated, and one that is not known stays', async () => {
    await startLanguage('de');
    expect(translated('more than 140')).toBe('mehr als 140');
    for (const text of ['Of a {0} newer list.', 'constructor', '']) expect(translated(text)).toBe(text);
  });

  it('has the plural form of the language', async () => {
    const { formatDuration } = await import('../features/settings/durations');
    const forms = async (wanted: 'de' | 'fr') => {
      await startLanguage(wanted);
      return ['0s', '1s', '1200s'].map(formatDuration);
    };
    expect(await forms('de')).toEqual(['0 Sekunden', '1 Sekunde', '1.200 Sekunden']);
    expect(await forms('fr')).toEqual(['0 seconde', '1 seconde', '1\u202f200 secondes']);
  });
});

// Their components are loaded after the catalog, as a page does.
describe('a page in German', () => {
  let network: Network;

  beforeAll(() => startLanguage('de'));
  beforeEach(() => {
    browser();
    network = new Network();
    network.override = ({ path }) => {
      if (path === '/tierbar/v1/models') return Response.json({ models_dir: '/data/models', models: [] });
      if (path === '/tierbar/v1/config')
        return Response.json({ path: '/data/config.toml', config: configured({ tiers: { fast: TIER } }) });
      return null;
    };
  });
  afterEach(() => {
    cleanup();
    location.hash = '';
  });

  it('says so, and writes its figures in German', async () => {
    const { decimal, duration, memory, moment } = await import('./format');
    expect(document.documentElement.lang).toBe('de');
    expect([memory(9.26 * 2 ** 30), decimal(0.5, 1), duration(1870)]).toEqual(['9,3 GB', '0,5', '1,9 s']);
    const now = new Date(2026, 10, 22, 15);
    expect(moment(new Date(2026, 10, 21, 14, 3).getTime(), now)).toBe('21. Nov. 14:03');
  });

  it('has the settings’ sections, titles, help and choices', async () => {
    const { openSettings } = await import('../testing/settings');
    const app = await openSettings(network, '#tiers');
    await screen.findByTestId('settings-tier-fast-model');
    for (const name of ['Allgemein', 'Stufen', 'Zugriff', 'Chat öffnen'])
      expect(document.querySelector('nav')?.textContent).toContain(name);
    expect(screen.getByText('Verhalten im Hintergrund')).toBeTruthy();
    expect(screen.getAllByText(/^Wie viele Token das Modell sehen kann\./)).not.toHaveLength(0);
    expect(screen.getAllByText('Nach 10 Minuten')).not.toHaveLength(0);
    app.feed.stop();
  });

  it('welcomes with nothing left in English', async () => {
    const [{ startApp }, { Chats }, { default: Root }] = await Promise.all([
      import('./app'),
      import('../features/chat/chats.svelte'),
      import('../features/chat/Root.svelte'),
    ]);
    const app = startApp({
      connection: async () => ({ url: '' }),
      openSettings: async () => {},
      openChat: async () => {},
    });
    render(Root, { app, chats: new Chats({ api: app.api }) });
    await until(() => network.eventStreams.length === 1);
    const tiers = STATUS.tiers.map((tier) => ({ ...tier, model: null, state: 'stopped' as const }));
    network.eventStreams[0]?.event('snapshot', { ...STATUS, tiers });
    expect(await screen.findByText('Wählen Sie Ihr erstes Modell')).toBeTruthy();
    expect(screen.getByPlaceholderText('Nachricht')).toBeTruthy();
    expect(document.body.textContent).not.toMatch(/\b(the|your|with|and|model)\b/i);
    app.feed.stop();
  });
});

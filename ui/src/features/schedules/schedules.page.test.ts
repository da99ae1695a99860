import { fireEvent, screen, within } from '@testing-library/svelte';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { App } from '../../lib/app';
import type { Config, ScheduleConfig } from '../../platform/openapi';
import { browser } from '../../testing/browser';
import { configured, TIER } from '../../testing/config';
import { Network, refusal, until } from '../../testing/host';
import { openSettings } from '../../testing/settings';

const NIGHTLY: ScheduleConfig = {
  at: '02:00',
  days: ['mon', 'tue', 'wed', 'thu', 'fri'],
  task: 'brief',
  source: '~/logs',
  to: '~/briefs/{date}.md',
  model: 'heavy',
};

let network: Network;
let app: App;
let config: Config;
let refuse: string | null;
let ran: { outcome: string; failing: boolean } | null;

beforeEach(() => {
  browser();
  network = new Network();
  config = configured({ tiers: { fast: TIER, heavy: TIER }, schedules: { nightly: NIGHTLY } });
  refuse = null;
  ran = null;
  network.override = ({ method, path, body }) => {
    if (path === '/tierbar/v1/config') {
      if (method === 'PATCH') {
        if (refuse) return refusal(400, 'bad_request', refuse);
        const changed = { ...config.schedules, ...body.schedules };
        for (const name of Object.keys(changed)) if (changed[name] === null) delete changed[name];
        config = { ...config, schedules: changed };
      }
      return Response.json({ path: '/data/config.toml', config });
    }
    if (path === '/tierbar/v1/schedules')
      return Response.json({
        schedules: Object.entries(config.schedules ?? {}).map(([name, schedule]) => ({
          name,
          ...schedule,
          next_at: 1_800_000_000,
          tried_at: ran && 1_784_548_865,
          outcome: null,
          failing: false,
          ...ran,
          running: false,
        })),
      });
    if (path.endsWith('/run')) {
      ran = { outcome: refuse ?? 'wrote it', failing: refuse !== null };
      return refuse ? refusal(404, 'not_found', refuse) : Response.json({ name: 'nightly', ...ran });
    }
    return null;
  };
});
afterEach(() => {
  app.feed.stop();
  location.hash = '';
});

async function open() {
  app = await openSettings(network, '#tiers');
  await until(() => screen.queryByTestId('schedule-add'));
}

const type = (testid: string, value: string) =>
  fireEvent.input(screen.getByTestId(testid), { target: { value } });
const sent = () => network.sent('PATCH', '/tierbar/v1/config').map(({ body }) => body);

describe('schedules', () => {
  it('are listed in words, run, changed and removed', async () => {
    await open();
    const row = screen.getByTestId('schedule');
    expect(row.textContent).toContain(
      'Every weekday at 02:00: Deep writes a brief of ~/logs and saves it as ~/briefs/{date}.md.',
    );
    await until(() => row.textContent?.includes('Next run:'));
    await fireEvent.click(within(row).getByTestId('schedule-run'));
    await until(() => /Last run \(.*\): wrote it/.test(row.textContent ?? ''));
    refuse = 'there is no file /nope';
    await fireEvent.click(within(row).getByTestId('schedule-run'));
    await screen.findByText('There is no file /nope.');
    await until(() => network.sent('GET', '/tierbar/v1/schedules').length === 3);
    expect(row.textContent).not.toContain('Failed (');
    refuse = null;

    await fireEvent.click(within(row).getByTestId('schedule-edit'));
    expect(screen.queryByTestId('schedule-name')).toBeNull();
    expect(document.activeElement).toBe(screen.getByLabelText('What to do'));
    expect(screen.getByTestId('schedule-form').textContent).toContain('that begin with a date and a time');
    await type('schedule-at', '06:30');
    await fireEvent.click(screen.getByTestId('schedule-mon'));
    expect(screen.getByTestId('schedule-effect').textContent).toContain(
      'Every Tuesday, Wednesday, Thursday, and Friday at 06:30',
    );
    await fireEvent.click(screen.getByTestId('schedule-save'));
    await until(() => screen.queryByTestId('schedule-form') === null);
    await until(() => document.activeElement === within(row).getByTestId('schedule-edit'));
    expect(sent()).toEqual([
      { schedules: { nightly: { ...NIGHTLY, at: '06:30', days: ['tue', 'wed', 'thu', 'fri'] } } },
    ]);

    await fireEvent.click(screen.getByTestId('schedule-remove'));
    await fireEvent.click(screen.getByRole('button', { name: 'Remove' }));
    await screen.findByTestId('schedules-empty');
    expect(sent().at(-1)).toEqual({ schedules: { nightly: null } });
    await until(() => document.activeElement === screen.getByTestId('schedule-add'));
  });

  it('are added, and what is wrong is told at its field', async () => {
    await open();
    await fireEvent.click(screen.getByTestId('schedule-add'));
    expect(document.activeElement).toBe(screen.getByTestId('schedule-name'));
    await fireEvent.keyDown(screen.getByTestId('schedule-name'), { key: 'Escape' });
    await until(() => document.activeElement === screen.queryByTestId('schedule-add'));
    await fireEvent.click(screen.getByTestId('schedule-add'));
    const problem = () => {
      const told = screen.queryByTestId('schedule-problem');
      return told && [told.dataset.field, told.textContent?.trim()];
    };
    const add = () => fireEvent.click(screen.getByTestId('schedule-save'));
    await add();
    expect(problem()).toEqual(['name', 'Enter a name, such as nightly.']);
    await type('schedule-name', 'nightly');
    await add();
    expect(problem()).toEqual(['name', 'A schedule with this name exists. Choose another name.']);
    await type('schedule-name', 'morning');
    await type('schedule-at', '');
    await add();
    expect(problem()).toEqual(['at', 'Enter a time of day, such as 07:00.']);
    expect(document.activeElement).toBe(screen.getByTestId('schedule-at'));
    await type('schedule-at', '07:15');
    await type('schedule-source', '~/notes');
    await type('schedule-to', 'b.md');
    refuse = 'schedules.morning.to: "b.md" is neither a full path nor a URL';
    await add();
    await until(() => problem());
    expect(problem()).toEqual(['to', '"b.md" is neither a full path nor a URL.']);
    refuse = null;
    await type('schedule-to', '~/b/{date}.md');
    expect(problem()).toBeNull();
    await add();
    await until(() => screen.queryAllByTestId('schedule').length === 2);
    expect(sent().at(-1)).toEqual({
      schedules: {
        morning: {
          at: '07:15',
          days: [],
          task: 'summarize',
          source: '~/notes',
          to: '~/b/{date}.md',
          model: '',
        },
      },
    });
  });
});

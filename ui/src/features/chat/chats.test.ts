import { beforeEach, describe, expect, it } from 'vitest';
import { Api } from '../../lib/http';
import { Network, refusal, until } from '../../testing/host';
import { Chats } from './chats.svelte';

let network: Network;
let chats: Chats;
beforeEach(() => {
  network = new Network();
  chats = new Chats({ api: new Api(async () => ({ url: '' })) });
});

async function talk(text: string, answer: string): Promise<void> {
  const before = network.turns.length;
  const done = chats.current.send(text);
  await until(() => network.turns.length > before);
  network.turns.at(-1)?.words(answer);
  network.turns.at(-1)?.finish('stop', 1);
  await done;
}

describe('the chat history', () => {
  it('begins with a new chat, which joins the list with its first message', async () => {
    await chats.refresh();
    expect(chats.list).toEqual([]);
    expect(chats.current.id).toBeNull();
    await talk('Hello?', 'Hi');
    expect(chats.list).toMatchObject([{ id: 'c1', title: 'Hello?' }]);
  });

  it('has the newest chat first', async () => {
    await talk('First', '1');
    chats.startNew();
    await talk('Second', '2');
    expect(chats.list.map((chat) => chat.title)).toEqual(['Second', 'First']);
    await chats.refresh();
    expect(chats.list.map((chat) => chat.title)).toEqual(['Second', 'First']);
  });

  it('opens a chat with its messages, and keeps the draft of each', async () => {
    await talk('First', '1');
    const first = chats.current;
    first.draft = 'to be continued';
    chats.startNew();
    chats.current.draft = 'something new';
    await chats.open('c1');
    expect(chats.current).toBe(first);
    expect(chats.current.draft).toBe('to be continued');
    chats.startNew();
    expect(chats.current.draft).toBe('something new');
  });

  it('reads a chat of an earlier day from the host', async () => {
    await talk('First', '1');
    const later = new Chats({ api: new Api(async () => ({ url: '' })) });
    await later.open('c1');
    expect(later.current.messages.map((message) => message.content)).toEqual(['First', '1']);
  });

  it('lets an answer stream on while another chat is shown', async () => {
    const first = chats.current;
    const done = first.send('First');
    await until(() => network.turns.length === 1);
    chats.startNew();
    expect(chats.current).not.toBe(first);
    expect(chats.isBusy('c1')).toBe(true);
    network.turns[0]?.words('1');
    network.turns[0]?.finish('stop', 1);
    await done;
    expect(chats.isBusy('c1')).toBe(false);
    await chats.open('c1');
    expect(chats.current.messages.at(-1)?.content).toBe('1');
  });

  it('starts a new chat with the tier of the last one', async () => {
    await chats.current.choose('primary');
    await talk('First', '1');
    chats.startNew();
    expect(chats.current.model).toBe('primary');
    expect(network.chats[0]?.model).toBe('primary');
  });

  it('keeps a changed tier with the chat', async () => {
    await talk('First', '1');
    await chats.current.choose('primary');
    expect(network.chats[0]?.model).toBe('primary');
    expect(chats.list[0]?.model).toBe('primary');
  });

  it('renames a chat', async () => {
    await talk('First', '1');
    await chats.rename('c1', 'Better');
    expect(chats.list[0]?.title).toBe('Better');
    expect(network.chats[0]?.title).toBe('Better');
  });

  it('deletes a chat, ends its answer, and shows a new one in its place', async () => {
    const done = chats.current.send('First');
    await until(() => network.turns.length === 1);
    await chats.remove('c1');
    await done;
    expect(network.turns[0]?.ended).toBe(true);
    expect(chats.list).toEqual([]);
    expect(chats.current.id).toBeNull();
    expect(chats.current.messages).toEqual([]);
  });

  it('keeps a chat that could not be deleted, and says why', async () => {
    await talk('First', '1');
    network.override = ({ method }) =>
      method === 'DELETE' ? refusal(507, 'storage', 'The disk is full.') : null;
    await chats.remove('c1');
    expect(chats.problem?.code).toBe('storage');
    expect(chats.list).toHaveLength(1);
  });

  it('keeps the error of a turn that no server could answer when the chats are read again', async () => {
    const done = chats.current.send('First');
    await until(() => network.turns.length === 1);
    network.turns[0]?.fail('unreachable', 'no step of nightly could answer');
    await done;
    await chats.refresh();
    expect(chats.current.problem?.message).toBe('no step of nightly could answer');
  });

  it('follows what another window does after an error', async () => {
    const other = new Chats({ api: new Api(async () => ({ url: '' })) });
    const failing = chats.current.send('First');
    await until(() => network.turns.length === 1);
    network.turns[0]?.fail('unreachable', 'no step of nightly could answer');
    await failing;
    await other.open('c1');
    const retried = other.current.answer();
    await until(() => network.turns.length === 2);
    await chats.refresh();
    network.turns[1]?.words('1');
    await until(() => chats.current.live?.text === '1');
    expect(chats.current.problem).toBeNull();
    network.turns[1]?.finish('stop');
    await retried;
    await until(() => !chats.current.busy);
    expect(chats.current.messages.map(({ content }) => content)).toEqual(['First', '1']);
  });

  it('joins the turn that refused its question, which is a draft again', async () => {
    await talk('First', '1');
    const other = new Chats({ api: new Api(async () => ({ url: '' })) });
    await other.open('c1');
    const done = other.current.send('Second');
    await until(() => network.turns.length === 2);
    await chats.current.send('Third');
    expect(chats.current.problem?.code).toBe('conflict');
    await chats.refresh();
    expect(chats.current.busy).toBe(true);
    expect(chats.current.draft).toBe('Third');
    network.turns[1]?.words('2');
    network.turns[1]?.finish('stop');
    await done;
    await until(() => !chats.current.busy);
    expect(chats.current.problem).toBeNull();
    expect(chats.current.messages.map(({ content }) => content)).toEqual(['First', '1', 'Second', '2']);
  });

  it('does not replace a new turn with what was read before it', async () => {
    await talk('First', '1');
    const other = new Chats({ api: new Api(async () => ({ url: '' })) });
    await other.open('c1');
    await talk('Second', '2');
    let answer = () => {};
    const held = new Promise<void>((resolve) => {
      answer = resolve;
    });
    const [chat] = network.chats;
    if (chat) chat.updated_at = '2026-11-23T12:00:00Z';
    const stale = structuredClone(chat);
    network.override = ({ method, path }) =>
      method === 'GET' && path === '/tierbar/v1/chats/c1' ? held.then(() => Response.json(stale)) : null;
    const refreshed = other.refresh();
    await until(() => network.requests.at(-1)?.path === '/tierbar/v1/chats/c1');
    const done = other.current.send('Third');
    await until(() => network.turns.length === 3);
    answer();
    await refreshed;
    expect(other.current.messages.map((message) => message.content)).toEqual(['First', '1', 'Third']);
    network.turns[2]?.finish('stop', 1);
    await done;
  });

  it('opens a chat again that could not be read the first time', async () => {
    await talk('First', '1');
    const later = new Chats({ api: new Api(async () => ({ url: '' })) });
    network.override = () => refusal(500, 'internal', 'Broken');
    await later.open('c1');
    expect(later.current.problem?.code).toBe('internal');
    network.override = () => null;
    await later.refresh();
    expect(later.current.messages).toHaveLength(2);
    expect(later.current.problem).toBeNull();
  });

  it('joins the turn that another window has begun', async () => {
    await talk('First', '1');
    const other = new Chats({ api: new Api(async () => ({ url: '' })) });
    await other.open('c1');
    const done = chats.current.send('Second');
    await until(() => network.turns.length === 2);
    await other.refresh();
    expect(other.isBusy('c1')).toBe(true);
    network.turns[1]?.words('2');
    await until(() => other.current.live?.text === '2');
    network.turns[1]?.finish('stop');
    await done;
    await until(() => !other.current.busy);
    expect(other.current.messages.map((message) => message.content)).toEqual(['First', '1', 'Second', '2']);
  });

  it('shows what another window has added', async () => {
    await talk('First', '1');
    const other = new Chats({ api: new Api(async () => ({ url: '' })) });
    await other.open('c1');
    await talk('Second', '2');
    if (network.chats[0]) network.chats[0].updated_at = '2026-01-02T00:00:00Z';
    await other.refresh();
    expect(other.current.messages).toHaveLength(4);
  });

  it('shows what was added while another chat was shown', async () => {
    await talk('First', '1');
    const other = new Chats({ api: new Api(async () => ({ url: '' })) });
    await other.open('c1');
    other.startNew();
    await talk('Second', '2');
    if (network.chats[0]) network.chats[0].updated_at = '2026-01-02T00:00:00Z';
    await other.refresh();
    await other.open('c1');
    expect(other.current.messages).toHaveLength(4);
  });

  it('reads the chats once more after a change during a read', async () => {
    const first = chats.refresh();
    await Promise.all([first, chats.refresh(), chats.refresh()]);
    expect(network.sent('GET', '/tierbar/v1/chats?limit=200')).toHaveLength(2);
  });

  it('restores a deleted chat, and shows it if it was shown', async () => {
    await talk('First', '1');
    chats.startNew();
    await talk('Second', '2');
    await chats.remove('c1');
    expect(chats.done).toMatchObject({ text: 'Deleted “First”.', deleted: { id: 'c1', shown: false } });
    await chats.undo();
    expect(chats.list.map(({ title }) => title)).toEqual(['Second', 'First']);
    expect(chats.current.id).toBe(network.chats.find(({ title }) => title === 'Second')?.id);
    await chats.remove(chats.current.id ?? '');
    expect(chats.current.id).toBeNull();
    await chats.undo();
    expect(chats.current.messages.map(({ content }) => content)).toEqual(['Second', '2']);
    expect(chats.done).toBeNull();
  });

  it('says why a chat could not be restored', async () => {
    await talk('First', '1');
    await chats.remove('c1');
    network.override = ({ path }) =>
      path.endsWith('/restore') ? refusal(404, 'not_found', 'there is no chat "c1"') : null;
    await chats.undo();
    expect(chats.problem?.code).toBe('not_found');
    expect(chats.done).toBeNull();
  });

  it('has pinned chats first', async () => {
    await talk('First', '1');
    chats.startNew();
    await talk('Second', '2');
    await chats.pin('c1', true);
    expect(chats.list.map(({ title }) => title)).toEqual(['First', 'Second']);
    await chats.refresh();
    expect(chats.list.map(({ title }) => title)).toEqual(['First', 'Second']);
  });

  it('searches once typing pauses, and shows the answer to the last words only', async () => {
    await talk('About rivers', 'The Rhine');
    for (const words of ['r', 'rh', 'rhine']) chats.search(words);
    await until(() => chats.found !== null);
    expect(network.sent('GET', '/tierbar/v1/chats?search=rhine')).toHaveLength(1);
    expect(network.requests.filter(({ path }) => path.includes('search='))).toHaveLength(1);
    expect(chats.found).toMatchObject([{ id: 'c1', found: { excerpt: 'The Rhine' } }]);
    await chats.rename('c1', 'Streams');
    expect(chats.found).toMatchObject([{ title: 'Streams', found: { excerpt: 'The Rhine' } }]);
    chats.search('');
    expect(chats.found).toBeNull();
  });

  it('branches a chat from a message', async () => {
    await talk('First', '1');
    const answer = chats.current.messages.at(-1)?.id ?? 0;
    await talk('Second', '2');
    await chats.fork(answer);
    expect(chats.current.id).not.toBe('c1');
    expect(chats.current.messages.map(({ content }) => content)).toEqual(['First', '1']);
    expect(chats.list).toHaveLength(2);
    expect(network.chats.map(({ title }) => title)).toEqual(['First', 'First (branch)']);
    expect(chats.list.map(({ title }) => title)).toContain('First (branch)');
  });

  it('begins a new chat after the first message of one was refused, and keeps what was typed', async () => {
    network.override = ({ method, path }) =>
      method === 'POST' && path === '/tierbar/v1/chats' ? refusal(507, 'storage', 'the disk is full') : null;
    const refused = chats.current;
    refused.model = 'primary';
    await refused.send('Hello?');
    refused.draft = 'And more';
    expect(refused.problem?.code).toBe('storage');
    chats.startNew();
    expect(chats.current).not.toBe(refused);
    expect(chats.current.messages).toEqual([]);
    expect(chats.current.problem).toBeNull();
    expect(chats.current.model).toBe('primary');
    expect(chats.current.draft).toBe('Hello?\n\nAnd more');
  });

  it('exports a chat', async () => {
    await talk('First', '1');
    const file = await chats.export('c1', 'markdown');
    expect(network.requests.at(-1)?.path).toBe('/tierbar/v1/chats/c1/export?format=markdown');
    expect(file?.size).toBeGreaterThan(0);
    expect(await chats.export('gone', 'json')).toBeNull();
    expect(chats.problem?.code).toBe('not_found');
  });

  it('imports files, adds up what came in, and names the one that was refused', async () => {
    network.imported = {
      chats: 2,
      messages: 5,
      known: 1,
      left_out: [{ what: 'images', count: 3, why: 'x' }],
    };
    await chats.import([new File(['{}'], 'a.json'), new File(['{}'], 'b.json')]);
    expect(chats.imported).toMatchObject({ chats: 4, messages: 10, known: 2, left_out: [{ count: 6 }] });
    chats.imported = null;
    network.override = ({ path }) =>
      path.endsWith('/import') ? refusal(400, 'bad_request', 'the file is not JSON') : null;
    await chats.import([new File(['x'], 'c.json')]);
    expect(chats.imported).toBeNull();
    expect(chats.problem?.message).toBe('“c.json” was not imported: the file is not JSON');
    expect(chats.importing).toBe(false);
  });

  it('goes on with the next file where one is refused', async () => {
    network.imported = { chats: 2, messages: 5, known: 0, left_out: [] };
    let uploads = 0;
    network.override = ({ path }) => {
      if (!path.endsWith('/import')) return null;
      uploads += 1;
      return uploads === 2 ? refusal(400, 'bad_request', 'the file is not JSON') : null;
    };
    await chats.import(['a', 'b', 'c'].map((name) => new File(['{}'], `${name}.json`)));
    expect(chats.imported).toMatchObject({
      chats: 4,
      refused: [{ file: 'b.json', why: 'The file is not JSON.' }],
    });
    expect(chats.problem).toBeNull();
  });
});

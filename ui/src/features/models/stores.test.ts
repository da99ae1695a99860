import { beforeEach, describe, expect, it } from 'vitest';
import { Api } from '../../lib/http';
import { Network, refusal, type Sent, until } from '../../testing/host';
import { localModel, verdict } from '../../testing/models';
import { Library } from './library.svelte';
import { ModelSearch } from './search.svelte';

let network: Network;
let api: Api;
beforeEach(() => {
  network = new Network();
  api = new Api(async () => ({ url: '' }));
});

/** Requests wait until the test calls their answer. */
function held(): ((body: unknown) => void)[] {
  const answers: ((body: unknown) => void)[] = [];
  network.override = () => {
    const body = new ReadableStream({
      start(controller) {
        answers.push((value) => {
          controller.enqueue(new TextEncoder().encode(JSON.stringify(value)));
          controller.close();
        });
      },
    });
    return new Response(body);
  };
  return answers;
}

describe('the list of models', () => {
  it('is the latest request’s, whichever answer arrives last', async () => {
    const answers = held();
    const library = new Library(api);
    const both = [library.load(), library.load()];
    await until(() => answers.length === 2);
    answers[1]?.({ models_dir: '/m', models: [localModel('new')] });
    await both[1];
    answers[0]?.({ models_dir: '/m', models: [localModel('old')] });
    await both[0];
    expect(library.models.map(({ id }) => id)).toEqual(['new']);
  });

  it('stays while a read fails, with the reason', async () => {
    network.override = () => Response.json({ models_dir: '/m', models: [localModel('a')] });
    const library = new Library(api);
    await library.load();
    network.override = () => refusal(507, 'storage', 'the folder cannot be read');
    await library.load();
    expect(library.models).toHaveLength(1);
    expect(library.problem?.code).toBe('storage');
  });

  it.each([
    [true, true, /^Verified/],
    [false, false, /^Damaged/],
    [null, true, /without a published checksum.*abc/],
  ])('describes a verification whose match is %s', async (matches, good, text) => {
    network.override = ({ path }) =>
      path.endsWith('/verify')
        ? Response.json({ sha256: 'abc', expected: null, matches })
        : Response.json({ models_dir: '/m', models: [] });
    const library = new Library(api);
    const model = localModel('o/a:b');
    await library.verify(model);
    expect(network.sent('POST', '/tierbar/v1/models/o%2Fa%3Ab/verify')).toHaveLength(1);
    expect(library.outcomes[model.path]?.good).toBe(good);
    expect(library.outcomes[model.path]?.text).toMatch(text);
    expect(library.busy[model.path]).toBeUndefined();
  });

  it('counts the models of an added folder', async () => {
    const models = [localModel('a'), localModel('b')];
    network.override = ({ method }) =>
      Response.json(method === 'POST' ? { models } : { models_dir: '/m', models });
    const library = new Library(api);
    expect(await library.addFolder('~/x')).toBe('2 models found.');
    expect(network.requests[0]?.body).toEqual({ path: '~/x' });
    expect(library.models).toHaveLength(2);
    models.length = 0;
    expect(await library.addFolder('~/y')).toContain('will appear here');
  });
});

describe('a search', () => {
  const result = (repository: string) => ({
    models: [{ repository, downloads: 1, likes: 0, updated: null, gated: false }],
  });

  it('shows the latest search, whichever answer arrives last', async () => {
    const answers = held();
    const search = new ModelSearch(api);
    const both = [search.search('one'), search.search('two')];
    await until(() => answers.length === 2);
    answers[1]?.(result('o/two'));
    await both[1];
    answers[0]?.(result('o/one'));
    await both[0];
    expect(search.result).toMatchObject({ kind: 'results', keywords: 'two' });
    expect(search.searching).toBe(false);
  });

  it('opens a result’s repository and goes back', async () => {
    network.override = ({ path }: Sent) =>
      path.includes('/search?')
        ? Response.json(result('o/r'))
        : Response.json({ repository: 'o/r', revision: 'x', licence: null, gated: false, files: [] });
    const search = new ModelSearch(api);
    await search.search('some words');
    expect(network.requests[0]?.path).toBe('/tierbar/v1/hub/search?q=some%20words');
    await search.open('o/r');
    expect(network.requests[1]?.path).toBe('/tierbar/v1/hub/repository?id=o%2Fr');
    expect(search.result?.kind).toBe('repository');
    search.back();
    expect(search.result).toMatchObject({ kind: 'results', keywords: 'some words' });
  });

  it('keeps its results when one cannot be opened', async () => {
    network.override = ({ path }) =>
      path.includes('/search?')
        ? Response.json(result('o/r'))
        : refusal(403, 'access_denied', 'it wants a token');
    const search = new ModelSearch(api);
    await search.search('words');
    await search.open('o/r');
    expect(search.problem?.code).toBe('access_denied');
    expect(search.result?.kind).toBe('results');
  });

  it('requests the verdict of a reference', async () => {
    network.override = () => Response.json(verdict({ estimated: true }));
    const search = new ModelSearch(api);
    await search.search('o/r:Q4_K_M');
    expect(network.requests[0]?.path).toBe('/tierbar/v1/models/fit?model=o%2Fr%3AQ4_K_M');
    expect(search.result).toMatchObject({
      kind: 'file',
      file: { reference: 'o/r:Q4_K_M', fit: { estimated: true } },
    });
  });
});

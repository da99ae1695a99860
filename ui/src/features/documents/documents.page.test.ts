import { fireEvent, screen } from '@testing-library/svelte';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { App } from '../../lib/app';
import type { FilesDragged } from '../../platform';
import type { DocumentAnswer, DocumentSource, Documents, Passage } from '../../platform/openapi';
import { browser } from '../../testing/browser';
import { Network, refusal, STATUS, Stream } from '../../testing/host';
import { openSettings } from '../../testing/settings';
import { describeDocuments, describeIndexing, describeSource, pieces, placeOf } from './words';

let network: Network;
let app: App;
let documents: Documents;
let answering: Stream | null;
let sees: boolean;
let dragged: (event: FilesDragged) => void;
let opened: number[];

const SOURCE: DocumentSource = {
  id: 1,
  path: '/Users/me/Papers',
  collection: 'Documents',
  is_folder: true,
  is_missing: false,
  problem: null,
  indexed: 12,
  waiting: 0,
  failed: 0,
  noticed: 0,
  read_pictures: false,
  passages: 1340,
  without_vectors: 0,
  left_out: null,
};
const PASSAGE: Passage = {
  id: 7,
  file: 3,
  path: '/Users/me/Papers/lights.pdf',
  title: 'Lighthouses',
  collection: 'Documents',
  headings: ['Methods'],
  page: 3,
  line: null,
  text: 'The tower is painted every seven years.',
  score: 0.5,
};
const ANSWER: DocumentAnswer = {
  answer: 'Every seven years [1].',
  citations: [{ number: 1, passage: PASSAGE }],
  reading: 'passages',
  tier: 'primary',
  model: 'm',
  notice: null,
};
const IDLE = { state: 'idle', file: null, done: 0, waiting: 0, embedder: 'minilm', problem: null } as const;

beforeEach(() => {
  browser();
  network = new Network();
  documents = { sources: [SOURCE], indexing: IDLE };
  answering = null;
  opened = [];
  network.override = (request) => {
    const { method, path, body } = request;
    if (path === '/v1/documents/ask') {
      answering = new Stream(request);
      return answering.response;
    }
    if (path === '/tierbar/v1/passages/7') {
      const before = { ...PASSAGE, id: 6, page: 2, text: 'Before it.' };
      return Response.json({ passages: [before, PASSAGE] });
    }
    if (path.startsWith('/tierbar/v1/documents/1/files')) {
      const file = {
        id: 9,
        source: 1,
        path: '/Users/me/Papers/scan.pdf',
        state: 'failed',
        kind: null,
        title: null,
        pages: null,
        passages: 0,
        size_bytes: 9,
        notice: 'This PDF holds pictures of pages, no text.',
        added_at: 1_790_000_000,
      };
      const part = {
        ...file,
        id: 10,
        path: '/Users/me/Papers/part.pdf',
        state: 'indexed',
        passages: 4,
        pages: 10,
      };
      const notice = '3 of 10 pages are pictures without text and are not read: pages 2, 5–6.';
      return Response.json({ files: path.endsWith('after=0') ? [file, { ...part, notice }] : [] });
    }
    if (path === '/tierbar/v1/documents/2' && method === 'DELETE') {
      documents = { ...documents, sources: [] };
      return new Response(null, { status: 204 });
    }
    if (path === '/tierbar/v1/documents/1' && method === 'PATCH') {
      if (!sees)
        return refusal(409, 'model_missing', 'no tier of this machine has a model that reads images');
      const sources = documents.sources.map((source) => ({ ...source, read_pictures: body.read_pictures }));
      documents = { ...documents, sources };
      return Response.json(documents);
    }
    if (path !== '/tierbar/v1/documents') return null;
    if (method === 'POST' && body.path === '/none') return refusal(404, 'not_found', '/none cannot be read');
    if (method === 'POST') {
      const added = { ...SOURCE, id: 2, path: body.path, collection: body.collection ?? 'Documents' };
      documents = { ...documents, sources: [...documents.sources, added] };
      return Response.json(added, { status: 201 });
    }
    if (method === 'PATCH') documents = { ...documents, indexing: { ...IDLE, state: 'paused', waiting: 4 } };
    return Response.json(documents);
  };
});
afterEach(() => {
  app.feed.stop();
  location.hash = '';
});

async function open() {
  app = await openSettings(network, '#documents', STATUS, {
    onFilesDropped: async (call) => {
      dragged = call;
      return () => {};
    },
    openDocument: (passage) => {
      opened.push(passage);
      return Promise.reject('it no longer exists');
    },
  });
}

it('answers a question with citations that open the passage', async () => {
  await open();
  await fireEvent.input(await screen.findByTestId('documents-question'), {
    target: { value: ' How often? ' },
  });
  await fireEvent.click(screen.getByTestId('documents-ask'));
  await screen.findByTestId('documents-waiting');
  const [asked] = network.sent('POST', '/v1/documents/ask');
  expect(asked?.body).toEqual({ question: 'How often?', collection: null, stream: true });
  answering?.data({ type: 'passages', passages: [PASSAGE] });
  answering?.data({ type: 'text', text: 'Every ' });
  expect((await screen.findByTestId('documents-answer')).textContent?.trim()).toBe('Every');
  answering?.data({ type: 'answer', answer: ANSWER });
  await fireEvent.click(await screen.findByRole('button', { name: 'Passage 1' }));
  const shown = await screen.findByTestId('passage');
  expect((await screen.findByText('Before it.')).tagName).toBe('P');
  expect(shown.querySelector('mark')?.textContent).toBe(PASSAGE.text);
  expect(shown.textContent).toContain('Page 2');
  expect(screen.getByTestId('documents-citation').textContent).toContain('Methods, page 3');
  await fireEvent.click(screen.getByTestId('passage-open'));
  expect(opened).toEqual([PASSAGE.id]);
  expect((await screen.findByTestId('passage-unopened')).textContent).toBe('It no longer exists.');
});

it('shows what was found if the answer cites nothing', async () => {
  await open();
  await fireEvent.input(await screen.findByTestId('documents-question'), { target: { value: 'How often?' } });
  await fireEvent.click(screen.getByTestId('documents-ask'));
  await expect.poll(() => answering).not.toBeNull();
  answering?.data({ type: 'passages', passages: [PASSAGE] });
  const notice = 'The answer cites no passage, so check it against the documents.';
  answering?.data({ type: 'answer', answer: { ...ANSWER, answer: 'Often.', citations: [], notice } });
  const found = await screen.findByRole('list', { name: 'Passages found' });
  expect(found.textContent).toContain(PASSAGE.text);
  await fireEvent.click(screen.getByTestId('documents-citation'));
  await screen.findByTestId('passage');
});

it('says why there is no answer, and can be stopped', async () => {
  await open();
  await fireEvent.input(await screen.findByTestId('documents-question'), { target: { value: 'What?' } });
  await fireEvent.click(screen.getByTestId('documents-ask'));
  await expect.poll(() => answering).not.toBeNull();
  answering?.data({ type: 'error', code: 'not_found', message: 'no passage has to do with it', hint: null });
  expect((await screen.findByTestId('error-banner')).textContent).toContain('No passage has to do with it.');
  await fireEvent.click(screen.getByTestId('documents-ask'));
  await expect.poll(() => screen.getByTestId('documents-ask').textContent?.trim()).toBe('Stop');
  await fireEvent.click(screen.getByTestId('documents-ask'));
  await expect.poll(() => answering?.closed).toBe(true);
  expect(screen.queryByTestId('error-banner')).toBeNull();
});

it('adds what is typed or dropped, and removes it again', async () => {
  documents = { sources: [], indexing: IDLE };
  await open();
  await screen.findByTestId('documents-empty');
  expect(screen.queryByTestId('documents-question')).toBeNull();
  await fireEvent.input(screen.getByTestId('documents-path'), { target: { value: '/none' } });
  await fireEvent.click(screen.getByTestId('documents-add'));
  await expect
    .poll(() => screen.getByTestId('documents-outcome').textContent)
    .toContain('/none cannot be read');
  dragged({ type: 'over' });
  await screen.findByTestId('documents-drop');
  dragged({ type: 'drop', paths: ['/Users/me/Papers'] });
  await expect.poll(() => screen.queryByTestId('document-source')?.textContent).toContain('Papers');
  expect(screen.queryByTestId('documents-drop')).toBeNull();
  await fireEvent.click(screen.getByTestId('document-remove'));
  await fireEvent.click(await screen.findByTestId('confirm'));
  await screen.findByTestId('documents-empty');
});

it('shows what is read, what cannot be, and pauses', async () => {
  documents = {
    sources: [
      {
        ...SOURCE,
        waiting: 4,
        failed: 1,
        noticed: 2,
        problem: '/Users/me/Papers cannot be read: permission denied',
        left_out: 'Not searched: 2 files (.gitignore)',
      },
    ],
    indexing: { ...IDLE, state: 'indexing', waiting: 4, file: '/Users/me/Papers/a.pdf' },
  };
  await open();
  expect((await screen.findByTestId('indexing')).textContent).toBe('Reading “a.pdf”. Files left: 4.');
  expect(screen.getByTestId('document-problem').textContent).toBe(
    '/Users/me/Papers cannot be read: permission denied.',
  );
  expect(screen.getByTestId('document-left-out').textContent).toBe('Not searched: 2 files (.gitignore).');
  const missing = screen.getByTestId('document-notices');
  expect(missing.textContent).toBe('1 file can’t be read · 2 files have notes');
  await fireEvent.click(missing);
  await screen.findByText('This PDF holds pictures of pages, no text.');
  expect(screen.getByTestId('notices').textContent).toContain('scan.pdf');
  await screen.findByText(/^3 of 10 pages are pictures/);
  const pictures = screen.getByRole('switch', { name: 'Read scanned pages' });
  sees = false;
  await fireEvent.click(pictures);
  await screen.findByText(/^No tier of this machine has a model that reads images/);
  expect(pictures.getAttribute('aria-checked')).toBe('false');
  sees = true;
  await fireEvent.click(pictures);
  await expect.poll(() => pictures.getAttribute('aria-checked')).toBe('true');
  expect(network.sent('PATCH', '/tierbar/v1/documents/1').at(-1)?.body).toEqual({ read_pictures: true });
  await fireEvent.click(screen.getByTestId('indexing-pause'));
  await expect.poll(() => screen.getByTestId('indexing').textContent).toBe('Paused. Files left to read: 4.');
});

it('describes sources, places and citations', () => {
  expect(describeSource({ ...SOURCE, waiting: 3 })).toBe('12 documents · 1,340 passages · 3 to read');
  expect(describeSource({ ...SOURCE, is_folder: false, is_missing: true, passages: 1 })).toBe(
    'Not connected · 1 passage',
  );
  expect(placeOf({ ...PASSAGE, title: 'Methods' })).toBe('page 3');
  expect(placeOf({ ...PASSAGE, headings: [], page: null, line: 12 })).toBe('line 12');
  expect(describeIndexing({ ...IDLE, embedder: null })).toContain('in Models');
  const half = [SOURCE, { ...SOURCE, id: 2, without_vectors: 1340 }];
  expect(describeDocuments({ sources: [SOURCE], indexing: IDLE })).toBe('All documents are read.');
  expect(describeDocuments({ sources: half, indexing: IDLE })).toBe(
    'All documents are read. 1,340 passages are found by their words only.',
  );
  expect(describeDocuments({ sources: half, indexing: { ...IDLE, embedder: null } })).not.toContain('1,340');
  expect(pieces('So [1], not [2] or [x].', [1])).toEqual([
    { words: 'So ' },
    { number: 1 },
    { words: ', not ' },
    { words: '[2]' },
    { words: ' or [x].' },
  ]);
});

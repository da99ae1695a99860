import { beforeEach, expect, it, vi } from 'vitest';
import { forgetDrafts, keepDraft, readDraft } from './drafts';

beforeEach(() => localStorage.clear());

it('drafts are kept by chat until they are empty', () => {
  keepDraft(null, 'Of a new chat');
  keepDraft('c1', 'Half a thought');
  keepDraft('c1', 'Half a thought, and more');
  expect([readDraft(null), readDraft('c1'), readDraft('c2')]).toEqual([
    'Of a new chat',
    'Half a thought, and more',
    '',
  ]);
  keepDraft('c1', '');
  expect(readDraft('c1')).toBe('');
  expect(localStorage.getItem('tierbar-drafts')).toBe('[["","Of a new chat"]]');
  forgetDrafts();
  expect(localStorage).toHaveLength(0);
});

it('the oldest drafts make room', () => {
  for (let chat = 0; chat < 40; chat += 1) keepDraft(`c${chat}`, 'text');
  expect([readDraft('c9'), readDraft('c10')]).toEqual(['', 'text']);
});

it('storage that is blocked, full or damaged is no error', () => {
  for (const damaged of ['{', '7', '[7]', '[["c1"]]', '[["c1", 7]]']) {
    localStorage.setItem('tierbar-drafts', damaged);
    expect(readDraft('c1')).toBe('');
  }
  vi.spyOn(Storage.prototype, 'setItem').mockImplementation(() => {
    throw new DOMException('full', 'QuotaExceededError');
  });
  keepDraft('c1', 'text');
  vi.spyOn(Storage.prototype, 'getItem').mockImplementation(() => {
    throw new DOMException('blocked', 'SecurityError');
  });
  expect(readDraft('c1')).toBe('');
});

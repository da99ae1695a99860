import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { poll } from './poll';

let hidden: boolean;
beforeEach(() => {
  vi.useFakeTimers();
  hidden = false;
  vi.spyOn(document, 'hidden', 'get').mockImplementation(() => hidden);
});
afterEach(() => vi.useRealTimers());

function show(seen: boolean) {
  hidden = !seen;
  document.dispatchEvent(new Event('visibilitychange'));
}

it('reads at once and repeatedly until stopped', async () => {
  const read = vi.fn(async () => {});
  const end = poll(read, 1000);
  expect(read).toHaveBeenCalledTimes(1);
  await vi.advanceTimersByTimeAsync(3000);
  expect(read).toHaveBeenCalledTimes(4);
  end();
  show(true);
  await vi.advanceTimersByTimeAsync(3000);
  expect(read).toHaveBeenCalledTimes(4);
});

it('waits for each answer before the next read', async () => {
  let answer = () => {};
  const read = vi.fn(() => new Promise<void>((resolve) => (answer = resolve)));
  const end = poll(read, 1000);
  await vi.advanceTimersByTimeAsync(9000);
  show(true);
  expect(read).toHaveBeenCalledTimes(1);
  answer();
  await vi.advanceTimersByTimeAsync(1000);
  expect(read).toHaveBeenCalledTimes(2);
  end();
});

it('pauses while the page is hidden, and reads when it is visible again', async () => {
  const read = vi.fn(async () => {});
  const end = poll(read, 1000);
  show(false);
  await vi.advanceTimersByTimeAsync(9000);
  expect(read).toHaveBeenCalledTimes(1);
  show(true);
  expect(read).toHaveBeenCalledTimes(2);
  await vi.advanceTimersByTimeAsync(1000);
  expect(read).toHaveBeenCalledTimes(3);
  end();
});

import { expect, it } from 'vitest';
import type { Api } from '../../lib/http';
import { Requests } from './requests.svelte';

it('lists a request once that two reads at a time bring', async () => {
  const get = async () => ({ requests: [{ id: 2 }, { id: 1 }] });
  const requests = new Requests({ get } as unknown as Api);
  await Promise.all([requests.load(), requests.load()]);
  expect(requests.list?.map(({ id }) => id)).toEqual([2, 1]);
});

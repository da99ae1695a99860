import type { Notification } from '../../platform/openapi';

/** Finds the notifications of the status that have not been shown yet. The first ones were there before the page. */
export class Shown {
  #last: number | null = null;

  next(published: Notification[]): Notification[] {
    const newest = published.at(-1)?.id ?? 0;
    const last = this.#last;
    this.#last = newest;
    // A host that has restarted counts anew.
    return last === null || newest < last ? [] : published.filter(({ id }) => id > last);
  }
}

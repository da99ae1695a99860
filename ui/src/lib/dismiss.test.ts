import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { dismiss } from './dismiss';

describe('what a button opens', () => {
  let root: HTMLElement;
  let inside: HTMLElement;
  let elsewhere: HTMLElement;
  let open: boolean;
  /** Whether each close gave the focus back. */
  let closed: boolean[];
  let detach: () => void;

  const press = (key: string) => {
    let heard = false;
    document.body.addEventListener('keydown', () => (heard = true), { once: true });
    inside.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
    return heard;
  };
  const point = (target: EventTarget) => target.dispatchEvent(new Event('pointerdown', { bubbles: true }));
  const leave = (relatedTarget: EventTarget | null) =>
    inside.dispatchEvent(new FocusEvent('focusout', { relatedTarget, bubbles: true }));

  beforeEach(() => {
    document.body.innerHTML = '<div><button></button><i></i></div><button></button>';
    root = document.querySelector('div') as HTMLElement;
    inside = root.querySelector('button') as HTMLElement;
    elsewhere = root.nextElementSibling as HTMLElement;
    open = true;
    closed = [];
    const close = (refocus: boolean) => {
      open = false;
      closed.push(refocus);
    };
    detach = dismiss({ open: () => open, close })(root) as () => void;
  });
  afterEach(() => {
    detach();
    document.body.innerHTML = '';
  });

  it('is closed by Escape, which goes no further and gives the focus back', () => {
    expect(press('ArrowDown')).toBe(true);
    expect(press('Escape')).toBe(false);
    expect(closed).toEqual([true]);
    expect(press('Escape')).toBe(true);
    expect(closed).toEqual([true]);
  });

  it('is closed by a click elsewhere, and not by one inside', () => {
    point(inside);
    point(root);
    expect(closed).toEqual([]);
    point(elsewhere);
    point(elsewhere);
    expect(closed).toEqual([false]);
  });

  it('is closed when the focus goes elsewhere, and not when it vanishes', () => {
    leave(root.querySelector('i'));
    leave(null);
    expect(closed).toEqual([]);
    leave(elsewhere);
    leave(elsewhere);
    expect(closed).toEqual([false]);
  });

  it('is left alone when its button is gone', () => {
    detach();
    point(elsewhere);
    expect(press('Escape')).toBe(true);
    expect(closed).toEqual([]);
  });
});

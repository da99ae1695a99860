import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { dismiss } from './dismiss';

describe('a popup', () => {
  let root: HTMLElement;
  let inside: HTMLElement;
  let elsewhere: HTMLElement;
  let open: boolean;
  /** Whether each close returned the focus. */
  let closed: boolean[];
  let detach: () => void;

  const press = (key: string) => {
    let received = false;
    document.body.addEventListener('keydown', () => (received = true), { once: true });
    inside.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
    return received;
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

  it('closes on Escape, which stops there, and returns the focus', () => {
    expect(press('ArrowDown')).toBe(true);
    expect(press('Escape')).toBe(false);
    expect(closed).toEqual([true]);
    expect(press('Escape')).toBe(true);
    expect(closed).toEqual([true]);
  });

  it('closes on a click outside, and not on one inside', () => {
    point(inside);
    point(root);
    expect(closed).toEqual([]);
    point(elsewhere);
    point(elsewhere);
    expect(closed).toEqual([false]);
  });

  it('closes when the focus leaves, and not when it is lost', () => {
    leave(root.querySelector('i'));
    leave(null);
    expect(closed).toEqual([]);
    leave(elsewhere);
    leave(elsewhere);
    expect(closed).toEqual([false]);
  });

  it('stops listening when its button is removed', () => {
    detach();
    point(elsewhere);
    expect(press('Escape')).toBe(true);
    expect(closed).toEqual([]);
  });
});

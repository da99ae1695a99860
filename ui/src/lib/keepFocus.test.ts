import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { keepFocus } from './keepFocus';

let root: HTMLElement;
let stop: () => void;
const get = <T extends HTMLElement = HTMLButtonElement>(id: string) => document.getElementById(id) as T;
const mutated = () => new Promise((done) => setTimeout(done));
const focused = () => document.activeElement?.id;

beforeEach(() => {
  document.body.innerHTML = `
    <button id="outside"></button>
    <main>
      <ul>
        <li id="row-a"><button id="a"></button></li>
        <li id="row-b"><button id="b"></button></li>
        <li id="row-c"><button id="c"></button></li>
      </ul>
      <form><input id="name" /><button id="create" type="submit"></button></form>
    </main>`;
  root = document.querySelector('main') as HTMLElement;
  stop = keepFocus(root);
});
afterEach(() => {
  stop();
  document.body.innerHTML = '';
});

describe('the focus', () => {
  it('goes to the next row, then to the one before', async () => {
    get('b').focus();
    get('row-b').remove();
    await mutated();
    expect(focused()).toBe('c');
    get('row-c').remove();
    await mutated();
    expect(focused()).toBe('a');
    get('row-a').remove();
    await mutated();
    expect(focused()).toBe('name');
  });

  it('goes to the field of a form whose button is disabled', async () => {
    get('create').focus();
    get('create').disabled = true;
    await mutated();
    expect(focused()).toBe('name');
  });

  it('comes back to a button that has worked', async () => {
    get('a').focus();
    get('a').disabled = true;
    get('a').blur();
    await mutated();
    get('a').disabled = false;
    await mutated();
    expect(focused()).toBe('a');
  });

  it('is not taken back from elsewhere', async () => {
    get('a').focus();
    get('outside').focus();
    get('row-a').remove();
    await mutated();
    expect(focused()).toBe('outside');
    get('b').focus();
    get('b').blur();
    await mutated();
    get('row-b').remove();
    await mutated();
    expect(document.activeElement).toBe(document.body);
  });
});

import { render } from '@testing-library/svelte';
import { expect, it } from 'vitest';
import DirectionMarks from './DirectionMarks.svelte';
import { nameOverrides } from './direction';

const NAME = 'photo\u202egnp.exe';

it('shows what would reverse a text by its name', () => {
  const { container } = render(DirectionMarks, { text: NAME });
  expect(container.textContent).toBe(NAME);
  expect(container.querySelector('.direction')?.getAttribute('title')).toBe('U+202E');
  expect(nameOverrides(NAME)).toBe('photo[U+202E]gnp.exe');
});

it('shows isolates in code alone', () => {
  const marks = (code: boolean) =>
    render(DirectionMarks, { text: 'a\u2066b', code }).container.querySelectorAll('.direction').length;
  expect([marks(false), marks(true)]).toEqual([0, 1]);
});

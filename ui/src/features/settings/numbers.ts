import { count } from '../../lib/format';

/** Says what is wrong with the number in a field, by the field's bounds; `null` if nothing is. */
export function numberProblem(input: HTMLInputElement, isWhole = false): string | null {
  const { valueAsNumber: value, min, max } = input;
  const isInside = (min === '' || value >= Number(min)) && (max === '' || value <= Number(max));
  if (Number.isFinite(value) && isInside && (!isWhole || Number.isInteger(value))) return null;
  const least = count(Number(min));
  if (max === '') return `Enter ${least} or more.`;
  const most = count(Number(max));
  return isWhole
    ? `Enter a whole number from ${least} to ${most}.`
    : `Enter a number from ${least} to ${most}.`;
}

/** Whether a field of a number is empty. One with something else than a number in it has no value either. */
export function isEmpty({ value, validity }: HTMLInputElement): boolean {
  return value.trim() === '' && !validity.badInput;
}

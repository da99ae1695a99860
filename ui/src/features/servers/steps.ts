/** The steps of a chain while they are arranged. */
import { QUEUE } from '../chains/steps';

/** Moves a step to another place. The queue stays last: nothing comes after it. */
export function moveStep(steps: string[], from: number, to: number): string[] {
  const last = steps.at(-1) === QUEUE ? steps.length - 2 : steps.length - 1;
  if (steps[from] === undefined || steps[from] === QUEUE) return steps;
  const moved = steps.filter((_, at) => at !== from);
  moved.splice(Math.max(0, Math.min(to, last)), 0, steps[from]);
  return moved;
}

/** Adds a step at the end, in front of the queue. */
export function addStep(steps: string[], step: string): string[] {
  if (steps.includes(step)) return steps;
  if (step === QUEUE || steps.at(-1) !== QUEUE) return [...steps, step];
  return [...steps.slice(0, -1), step, QUEUE];
}

import type { ChainStatus } from '../../platform/openapi';
import { displayName } from '../tiers/tiers';

/** The name of the last step that puts a request into the queue. */
export const QUEUE = 'queue';

/** Lists the steps in order, such as `cloud, then fast, then the queue`. */
export function formatSteps({ steps }: ChainStatus): string {
  const names = steps.map(({ step }) => (step === QUEUE ? 'the queue' : displayName(step)));
  return names.slice(1).reduce((before, name) => `${before}, then ${name}`, names[0] ?? '');
}

/** Returns a step's name for a list. */
export function stepName(step: string): string {
  return step === QUEUE ? 'Queue' : displayName(step);
}

import type { ChainStatus } from '../../platform/openapi';

/** The name of the last step that puts a request into the queue. */
export const QUEUE = 'queue';

/** Lists the steps in order, such as `cloud, then fast, then the queue`. */
export function formatSteps({ steps }: ChainStatus): string {
  const names = steps.map(({ step }) => (step === QUEUE ? 'the queue' : step));
  return names.slice(1).reduce((before, name) => `${before}, then ${name}`, names[0] ?? '');
}

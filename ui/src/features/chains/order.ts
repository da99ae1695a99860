import type { ChainStatus } from '../../platform/api';

/** A last step that is no tier. */
export const QUEUE = 'queue';

/** Who is asked, one after another. */
export function order({ steps }: ChainStatus): string {
  return steps.map(({ step }) => (step === QUEUE ? 'the queue' : step)).join(', then ');
}

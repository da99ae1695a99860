import type { Action } from '../../lib/Menu.svelte';
import type { ChainStatus, TierStatus } from '../../platform/openapi';
import { AUTO, displayName } from '../tiers/tiers';
import type { Message } from './turns';

/** The ways to another answer: what answers this chat, then each other tier and chain, for that answer alone. */
export function otherAnswers(
  model: string,
  tiers: TierStatus[],
  chains: ChainStatus[],
  answer: (model: string) => void,
): Action[] {
  const able = tiers.filter(
    (tier) => tier.kind === 'chat' && (tier.model !== null || tier.engine !== 'embedded'),
  );
  const names = [AUTO, ...able.map(({ id }) => id), ...chains.map(({ name }) => name)];
  const others = names.filter((name) => name !== model);
  return [
    { label: 'Again', testid: 'regenerate-again', run: () => answer(model) },
    ...others.map((name) => ({
      label: `With ${displayName(name)}`,
      testid: `regenerate-${name}`,
      run: () => answer(name),
    })),
  ];
}

/** Whether the model ended the answer. */
export function isComplete({ finish }: Message): boolean {
  return finish === 'stop' || finish === 'no_step';
}

/** Whether the tier that wrote an answer can carry it on: only Tierbar's own engine goes on where a message ends. */
export function canContinue(answer: Message, tiers: TierStatus[]): boolean {
  const unfinished = answer.finish !== null && !isComplete(answer) && answer.content.trim() !== '';
  return unfinished && tiers.some(({ id, engine }) => id === answer.tier && engine === 'embedded');
}

import type { ChainStatus, TierState, TierStatus } from '../../platform/openapi';
import { formatSteps } from '../chains/steps';

/** The name under which a request lets the router choose. */
export const AUTO = 'auto';

/** Says what is wrong with the name of a tier, chain or schedule; `null` if nothing is. */
export function nameProblem(name: string): string | null {
  if (name === AUTO) return 'Requests for auto let Tierbar choose a tier. Choose another name.';
  if (/^[a-z][a-z0-9-]{0,31}$/.test(name)) return null;
  return 'Use up to 32 lowercase letters, digits, and hyphens, starting with a letter.';
}

const STATE_LABEL: Record<TierState, string> = {
  stopped: 'Not loaded',
  starting: 'Loading…',
  ready: 'Ready',
  busy: 'Answering',
  stopping: 'Unloading…',
  failed: 'Failed',
};

/** Returns the state's label; for a load, with its progress. */
export function stateLabel({ state, engine, loaded_percent: percent }: TierStatus): string {
  if (engine === 'endpoint' && state === 'stopped') return 'Stopped';
  return state === 'starting' && percent !== null ? `Loading, ${percent} %` : STATE_LABEL[state];
}

export function holdsModel(state: TierState): boolean {
  return state === 'ready' || state === 'busy';
}

/** Returns the loaded tiers, busy ones first. */
export function loadedTiers(tiers: TierStatus[]): TierStatus[] {
  return tiers.filter((tier) => holdsModel(tier.state)).sort((a, b) => rank(a) - rank(b));
}

/** Returns whether another server answers for the tier: nothing is loaded here. */
function isEndpoint(tier: TierStatus): boolean {
  return tier.engine === 'endpoint';
}

/** The tier of this computer to ask instead, after another server has refused; one that is loaded before others. */
export function otherTier(code: string, tiers: TierStatus[]): TierStatus | undefined {
  if (code === 'context_length_exceeded') return undefined;
  const able = tiers.filter(({ kind, engine, model }) => kind === 'chat' && engine !== 'endpoint' && model);
  return loadedTiers(able)[0] ?? able[0];
}

function rank(tier: TierStatus): number {
  return tier.state === 'busy' ? 0 : 1;
}

/** Describes in a sentence what answers the next message of a chat that requests `model`. */
export function describeSelection(model: string, tiers: TierStatus[], chain?: ChainStatus): string {
  if (!tiers.some((tier) => tier.model)) return 'Choose a model to get started. It runs on this computer.';
  if (model === AUTO) {
    const loaded = loadedTiers(tiers)[0];
    if (loaded)
      return isEndpoint(loaded)
        ? `Tierbar picks a tier for each question. ${displayName(loaded.id)} is available.`
        : `Tierbar picks a tier for each question. ${displayName(loaded.id)} is loaded.`;
    return 'Tierbar picks a tier for each question. The first answer waits until a model loads.';
  }
  if (chain) return `${chain.name} tries ${formatSteps(chain)} until one answers.`;
  const tier = tiers.find((tier) => tier.id === model);
  if (!tier) return `The tier ${model} no longer exists. Choose another one above.`;
  const name = displayName(tier.id);
  if (!tier.model) return `${name} has no model yet. Choose one in Settings.`;
  if (isEndpoint(tier)) return `${name} is available. It answers with ${tier.model}.`;
  if (holdsModel(tier.state)) return `${name} answers with ${tier.model}, which is loaded.`;
  return `${name} answers with ${tier.model}. It loads when you start typing.`;
}

/** Returns a sentence of the host with the window’s names of tiers, where their ids are words of their own. */
export function withDisplayNames(text: string): string {
  const id = /^(\(?)(fast|primary|heavy)(?=('s)?[,;:.)]*$)/;
  const words = text
    .split(' ')
    .map((word) => word.replace(id, (_, before, name) => before + displayName(name)));
  return words.join(' ');
}

/** Returns the words of a search in the host’s sentences, with the ids of tiers that are typed by their names. */
export function withIds(words: string): string {
  const id = (word: string) =>
    Object.keys(DISPLAY_NAMES).find((id) => displayName(id).toLowerCase() === word.toLowerCase());
  return words
    .split(' ')
    .map((word) => id(word) ?? word)
    .join(' ');
}

const DISPLAY_NAMES: Record<string, string> = {
  [AUTO]: 'Auto',
  fast: 'Fast',
  primary: 'Everyday',
  heavy: 'Deep',
};

/** What people call the tier. Apps request it by its id. */
export function displayName(id: string): string {
  return DISPLAY_NAMES[id] ?? id;
}

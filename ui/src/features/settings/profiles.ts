import { count, memory } from '../../lib/format';
import type { Profile, ProfileFit } from '../../platform/openapi';

/** What a tier is used for, in menus. */
export const PROFILE: Record<Profile, string> = {
  balanced: 'Everyday use',
  long_context: 'Long documents',
  agent: 'Coding agents',
  paged: 'Models larger than memory',
};

const HELP: Record<Profile, string> = {
  balanced:
    'The longest context for at most an eighth of the memory for models, but 16,384 tokens if they fit.',
  long_context: 'The longest context that fits beside the model.',
  agent: 'Up to 32,768 tokens, for programs that send tools and files with each request.',
  paged: '16,384 tokens, which leaves the most memory for the model.',
};

/** Returns a profile's name in a menu, with what it comes to if that is known. */
export function profileOption(profile: Profile, fit?: ProfileFit): string {
  if (!fit) return PROFILE[profile];
  if (fit.placement === 'refused') return `${PROFILE[profile]} (too large)`;
  const reads = fit.placement === 'resident' ? '' : ', reads from disk';
  return `${PROFILE[profile]} (${count(fit.context_tokens)} tokens, ${memory(fit.total_bytes)}${reads})`;
}

/** Returns what a profile does, with the settings that it comes to if they are known. */
export function profileHelp(profile: Profile, fit?: ProfileFit): string {
  if (!fit) return HELP[profile];
  return `${HELP[profile]} On this computer: ${count(fit.context_tokens)} tokens in ${fit.kv_cache}, ${memory(fit.total_bytes)} of memory in all.`;
}

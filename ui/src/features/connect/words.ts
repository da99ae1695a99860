import { count } from '../../lib/format';
import type { ClientSettings, ClientTier, Snippet } from '../../platform/openapi';
import { displayName } from '../tiers/tiers';

/** Packages, whose names are words. */
const NAMES: Record<string, string> = {
  openai: 'OpenAI’s packages',
  anthropic: 'Anthropic’s packages',
  ollama: 'Ollama’s packages and command',
};

/** What people call an app or a package. */
export function nameOf({ id, name }: Pick<ClientSettings, 'id' | 'name'>): string {
  return NAMES[id] ?? name;
}

/** Where a setting is entered. */
export function placeOf({ kind, place }: Snippet): string {
  if (kind === 'environment') return 'In the environment of your shell';
  return kind === 'terminal' ? 'In a terminal' : `In ${place}`;
}

/** Says what the suggested tier has of what the app needs: `ClientSettings.reason` in the page's language. */
export function reasonFor(client: ClientSettings, tier: ClientTier | undefined): string {
  return [has(tier), needs(client)].filter(Boolean).join(' ');
}

function has(tier: ClientTier | undefined): string {
  if (!tier) return '';
  const { tools, context_tokens } = tier;
  if (context_tokens === null) return tools ? 'It supports tools.' : '';
  return tools
    ? `It supports tools and has a context of ${count(context_tokens)} tokens.`
    : `It has a context of ${count(context_tokens)} tokens.`;
}

function needs(client: ClientSettings): string {
  const { tools, context } = client.needs;
  const name = nameOf(client);
  if (context === 0) return tools ? `${name} needs tools.` : '';
  return tools
    ? `${name} needs tools and a context of at least ${count(context)} tokens.`
    : `${name} needs a context of at least ${count(context)} tokens.`;
}

/** Says what the suggested tier lacks, and what to do: `ClientSettings.warnings` in the page's language. */
export function warningsFor(client: ClientSettings, tier: ClientTier | undefined): string[] {
  if (client.model === null) return [];
  if (!tier) return ['No tier has a model yet. Choose one in Models.'];
  const { tools, context } = client.needs;
  const [app, name, held] = [nameOf(client), displayName(tier.id), tier.context_tokens];
  const warnings: string[] = [];
  if (tools && tier.tools === false)
    warnings.push(
      `${name}’s model doesn’t support tools; Tierbar describes them in the prompt, which works less well. For ${app}, choose a model with tools in Models.`,
    );
  if (tools && tier.tools === null)
    warnings.push(
      `${app} needs tools, and Tierbar doesn’t know whether ${name} supports them. Try it first.`,
    );
  if (held === null && context > 0)
    warnings.push(
      `${app} needs a context of at least ${count(context)} tokens. Compare it with ${name}’s in Tiers.`,
    );
  if (held !== null && held < context)
    warnings.push(
      `${app} needs a context of at least ${count(context)} tokens, and ${name} has ${count(held)}. Choose a longer one in Tiers.`,
    );
  return warnings;
}

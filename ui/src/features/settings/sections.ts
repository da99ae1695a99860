import type { IconName } from '../../lib/Icon.svelte';
import type { SettingsSection } from '../../platform';

/** The sections of the settings, in their order. `words`: what else one may look for there. */
export const SECTIONS: { id: SettingsSection; label: string; icon: IconName; words: string }[] = [
  { id: 'general', label: 'General', icon: 'sliders', words: 'login folder network sleep' },
  { id: 'models', label: 'Models', icon: 'cpu', words: 'download catalog' },
  { id: 'documents', label: 'Documents', icon: 'document', words: 'papers files folders PDF search ask' },
  { id: 'tiers', label: 'Tiers', icon: 'layers', words: 'context speed' },
  { id: 'servers', label: 'Cloud', icon: 'cloud', words: 'servers endpoints chains Anthropic OpenAI' },
  { id: 'connect', label: 'Connect', icon: 'plug', words: 'apps clients settings MCP servers tools agents' },
  {
    id: 'access',
    label: 'Access',
    icon: 'key',
    words: 'API keys network other computers sign out agent permissions',
  },
  {
    id: 'monitor',
    label: 'Monitor',
    icon: 'gauge',
    words: 'memory event log queue grades costs prices break-even',
  },
];

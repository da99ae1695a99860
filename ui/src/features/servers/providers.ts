/** Servers that people often add, with their addresses. */
import type { Dialect } from '../../platform/openapi';

export interface Provider {
  id: string;
  name: string;
  /** The URL before `/v1/…`; empty if only the user knows it. */
  url: string;
  dialect: Dialect;
  /** What a name of one of its models looks like. */
  example: string;
  /** Whether it answers without a key. */
  keyless: boolean;
  /** Where its models run: on other people's computers, or on one of the user's. */
  remote: boolean;
}

export const PROVIDERS: Provider[] = [
  cloud('anthropic', 'Anthropic', 'https://api.anthropic.com', 'claude-sonnet-4-5', 'anthropic'),
  cloud('openai', 'OpenAI', 'https://api.openai.com', 'gpt-5-mini'),
  cloud('openrouter', 'OpenRouter', 'https://openrouter.ai/api', 'qwen/qwen3.5-35b-a3b'),
  cloud('mistral', 'Mistral', 'https://api.mistral.ai', 'mistral-small-latest'),
  cloud('groq', 'Groq', 'https://api.groq.com/openai', 'openai/gpt-oss-20b'),
  cloud('deepseek', 'DeepSeek', 'https://api.deepseek.com', 'deepseek-chat'),
  own('ollama', 'Ollama on another computer', 'http://HOST:11434', 'qwen3:8b'),
  own('lm-studio', 'LM Studio on another computer', 'http://HOST:1234', 'qwen3-8b'),
  own('other', 'Another server', '', 'model-name'),
];

function cloud(
  id: string,
  name: string,
  url: string,
  example: string,
  dialect: Dialect = 'openai',
): Provider {
  return { id, name, url, dialect, example, keyless: false, remote: true };
}

function own(id: string, name: string, url: string, example: string): Provider {
  return { id, name, url, dialect: 'openai', example, keyless: true, remote: false };
}

/** Returns a free name for a tier of this provider, such as `openai` or `openai-2`. */
export function freeName(provider: Provider, taken: string[]): string {
  const base = provider.id === 'other' ? 'server' : provider.id;
  let name = base;
  for (let number = 2; taken.includes(name); number += 1) name = `${base}-${number}`;
  return name;
}

/** Returns the URL before `/v1`, as the configuration has it, of what people paste. */
export function baseUrl(typed: string): string {
  return typed
    .trim()
    .replace(/\/+$/, '')
    .replace(/\/v1(\/(chat\/completions|completions|messages|models|responses))?$/, '')
    .replace(/\/+$/, '');
}

import { kept } from '../../lib/kept';
import type { AgentReach } from './agent';

export interface KeptAgent {
  folder: string;
  reach: AgentReach;
}

/**
 * The folders that models may act in, by chat. The browser keeps them, so that a chat goes on as it was after a reload. More
 * than these belong to abandoned chats.
 */
const agents = kept<[chat: string, agent: KeptAgent]>('tierbar-agents', 30);

export function readAgent(chat: string): KeptAgent | null {
  const agent = agents.read().find(([of]) => of === chat)?.[1];
  if (typeof agent?.folder !== 'string' || typeof agent.reach !== 'object') return null;
  return agent;
}

/** `null` removes what was kept. */
export function keepAgent(chat: string, agent: KeptAgent | null): void {
  const before = agents.read();
  const others = before.filter(([of]) => of !== chat);
  if (agent !== null) agents.write([...others, [chat, agent]]);
  else if (others.length < before.length) agents.write(others);
}

/** Protects them from the browser's next user. */
export const forgetAgents = agents.forget;

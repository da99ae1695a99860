import type { AgentReach } from './agent';

/** The folders that models may act in, by chat. The browser keeps them, so that a chat goes on as it was after a reload. */
const KEY = 'tierbar-agents';

/** More are of chats that nobody goes back to. */
const MOST = 30;

export interface KeptAgent {
  folder: string;
  reach: AgentReach;
}

type Kept = [chat: string, agent: KeptAgent][];

function read(): Kept {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(KEY) ?? '[]');
    return Array.isArray(kept) ? (kept.filter(Array.isArray) as Kept) : [];
  } catch {
    // Blocked, or written by something else.
    return [];
  }
}

export function readAgent(chat: string): KeptAgent | null {
  const agent = read().find(([kept]) => kept === chat)?.[1];
  if (typeof agent?.folder !== 'string' || typeof agent.reach !== 'object') return null;
  return agent;
}

/** `null` removes what was kept. */
export function keepAgent(chat: string, agent: KeptAgent | null): void {
  const before = read();
  const others = before.filter(([kept]) => kept !== chat);
  if (agent === null && others.length === before.length) return;
  const agents = agent === null ? others : [...others, [chat, agent]];
  try {
    localStorage.setItem(KEY, JSON.stringify(agents.slice(-MOST)));
  } catch {
    // Blocked, or full: the page has it still.
  }
}

/** For whoever uses this browser next. */
export function forgetAgents(): void {
  try {
    localStorage.removeItem(KEY);
  } catch {
    // There are none.
  }
}

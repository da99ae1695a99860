import { decimal, duration, speed } from '../../lib/format';
import type { ContextUse, ExpertReads } from '../../platform/openapi';
import { describeReads } from './reads';

/** What is known of an answer. */
export interface AnswerSource {
  tier: string | null;
  model: string | null;
  why: string | null;
  insteadOf: string | null;
  tokensPerSecond: number | null;
  /** The time is the network's and the server's: its rate says nothing of this machine. */
  isEndpoint: boolean;
  firstTokenMs: number | null;
  loadMs: number | null;
  context: ContextUse | null;
  experts: ExpertReads | null;
}

export interface Fact {
  text: string;
  /** More about it. */
  title?: string;
  /** Another tier than the chosen one answered. */
  isReplacement?: boolean;
}

/** The line below an answer: what answered, how fast, and what it waited for. */
export function factsOf(source: AnswerSource): Fact[] {
  const { tier, model, insteadOf, firstTokenMs, experts } = source;
  const facts: Fact[] = [];
  const title = source.why ?? undefined;
  if (tier) {
    if (insteadOf) facts.push({ text: `${tier}, instead of ${insteadOf}`, title, isReplacement: true });
    else facts.push({ text: tier, title });
  }
  if (model && model !== tier) facts.push({ text: model });
  const rate = measuredRate(source);
  if (rate !== null) facts.push({ text: speed(rate) });
  if (firstTokenMs !== null) {
    const text =
      source.loadMs === null
        ? `${wait(firstTokenMs)} to first word`
        : `${wait(firstTokenMs)} to first word (${wait(source.loadMs)} loading)`;
    facts.push({ text });
  }
  if (experts) facts.push(...describeReads(experts).map((text) => ({ text })));
  return facts;
}

/** Tokens per second, where they mean something: not over less than two tokens or a quarter of a second. */
function measuredRate({ tokensPerSecond, isEndpoint, context }: AnswerSource): number | null {
  if (tokensPerSecond === null || isEndpoint) return null;
  if (context === null) return tokensPerSecond;
  const tokens = context.answer_tokens;
  return tokens < 2 || (tokens - 1) / tokensPerSecond < 0.25 ? null : tokensPerSecond;
}

/** In seconds, from a tenth on. */
function wait(ms: number): string {
  return ms >= 99.5 && ms < 1000 ? `${decimal(ms / 1000, 1)} s` : duration(ms);
}

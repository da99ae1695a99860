import { decimal, duration, speed } from '../../lib/format';
import type { AnswerTimes, ContextUse, ExpertReads } from '../../platform/openapi';
import { displayName } from '../tiers/tiers';
import { describeReads } from './reads';
import { describeSpeculation } from './speculation';

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
  times: AnswerTimes | null;
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

/** What takes less is not mentioned, in milliseconds. */
const SHORTEST = 50;

/** The line below an answer: what answered, how fast, and where its time went. */
export function factsOf(source: AnswerSource): Fact[] {
  const { tier, model, insteadOf, firstTokenMs, experts } = source;
  const facts: Fact[] = [];
  const title = source.why ?? undefined;
  if (tier) {
    const name = displayName(tier);
    if (insteadOf)
      facts.push({ text: `${name}, instead of ${displayName(insteadOf)}`, title, isReplacement: true });
    else facts.push({ text: name, title });
  }
  if (model && model !== tier) facts.push({ text: model });
  const rate = measuredRate(source);
  if (rate !== null) facts.push({ text: speed(rate) });
  if (firstTokenMs !== null) facts.push({ text: describeFirstToken(firstTokenMs, source.times) });
  const decode = source.times?.decode_ms ?? 0;
  if (decode >= SHORTEST) facts.push({ text: `${wait(decode)} generating` });
  const speculation = source.times?.speculation;
  if (speculation) facts.push(...describeSpeculation(speculation).map((text) => ({ text })));
  if (experts) facts.push(...describeReads(experts).map((text) => ({ text })));
  return facts;
}

/** The time to the first token, with its loading and prefill where they matter. */
function describeFirstToken(ms: number, times: AnswerTimes | null): string {
  const { load_ms: load = null, prefill_ms: prefill = null } = times ?? {};
  const loading = load !== null && load >= SHORTEST;
  const reading = prefill !== null && prefill >= SHORTEST;
  if (loading && reading) return `${wait(ms)} to first token (load ${wait(load)}, prompt ${wait(prefill)})`;
  if (loading) return `${wait(ms)} to first token (load ${wait(load)})`;
  if (reading) return `${wait(ms)} to first token (prompt ${wait(prefill)})`;
  return `${wait(ms)} to first token`;
}

/** Tokens per second, where they mean something: not over less than two tokens or a quarter of a second. */
function measuredRate({ tokensPerSecond, isEndpoint, times, context }: AnswerSource): number | null {
  // With an answer's times comes a rate only if its server has measured it.
  if (tokensPerSecond === null || (isEndpoint && times === null)) return null;
  if (context === null) return tokensPerSecond;
  const tokens = context.answer_tokens;
  return tokens < 2 || (tokens - 1) / tokensPerSecond < 0.25 ? null : tokensPerSecond;
}

/** In seconds, from a tenth on. */
function wait(ms: number): string {
  return ms >= 99.5 && ms < 1000 ? `${decimal(ms / 1000, 1)} s` : duration(ms);
}

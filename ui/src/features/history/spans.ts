import { sentence, span } from '../../lib/format';
import type { Entry, RequestRecord, TierStatus } from '../../platform/openapi';
import { displayName, holdsModel } from '../tiers/tiers';
import { type Range, timeIn } from './range';

/** A time during which a tier was loading or loaded, in seconds since 1970. */
export interface Span {
  tier: string;
  phase: 'loading' | 'loaded';
  from: number;
  to: number;
  model: string | null;
  /** Why it ended, as the event log says; `null` while it lasts, and where no event says so. */
  why: string | null;
  lasts: boolean;
}

const ENDS = new Set(['unload', 'failure', 'crash']);

/** The spans of a tier from its events, the oldest first, that lie between two times. */
export function spansOf(tier: TierStatus, events: Entry[], from: number, to: number): Span[] {
  const spans: Span[] = [];
  let open: Span | null = null;
  let known = false;
  const close = (at: number, why: string | null) => {
    if (open) spans.push({ ...open, to: at, why, lasts: false });
    open = null;
  };
  for (const { at_ms, kind, model, sentence } of events.filter((event) => event.tier === tier.id)) {
    const at = at_ms / 1000;
    if (kind === 'load') {
      // A host that was killed has left no event of the end.
      close(at, null);
      open = { tier: tier.id, phase: 'loading', from: at, to, model, why: null, lasts: true };
    } else if (kind === 'ready') {
      close(at, null);
      open = { tier: tier.id, phase: 'loaded', from: at, to, model, why: null, lasts: true };
    } else if (ENDS.has(kind)) {
      // What ends before any other event was loaded before these events begin.
      if (!known && kind !== 'failure')
        open = { tier: tier.id, phase: 'loaded', from, to, model, why: null, lasts: true };
      close(at, sentence);
    } else continue;
    known = true;
  }
  const live = holdsModel(tier.state) || tier.state === 'starting' || tier.state === 'stopping';
  if (live && tier.engine !== 'endpoint') {
    const phase = tier.state === 'starting' ? 'loading' : 'loaded';
    const since: Span | null =
      open ?? (known ? null : { tier: tier.id, phase, from, to, model: tier.model, why: null, lasts: true });
    if (since) spans.push(since);
  }
  return spans
    .filter((span) => span.to >= from && span.from <= to)
    .map((span) => ({ ...span, from: Math.max(span.from, from), to: Math.min(span.to, to) }));
}

/** When a tier was answering: the times of its requests, with those that touch joined. */
export function answering(tier: string, requests: RequestRecord[], from: number, to: number) {
  const joined: { from: number; to: number }[] = [];
  const times = requests
    .filter((request) => request.tier === tier)
    .map(({ at_ms, waited_ms, duration_ms }) => ({
      from: Math.max((at_ms + (waited_ms ?? 0)) / 1000, from),
      to: Math.min((at_ms + duration_ms) / 1000, to),
    }))
    .filter((time) => time.to > time.from)
    .sort((one, other) => one.from - other.from);
  for (const time of times) {
    const last = joined.at(-1);
    if (last && time.from <= last.to) last.to = Math.max(last.to, time.to);
    else joined.push({ ...time });
  }
  return joined;
}

/** Describes a span in sentences: what, when, and why it ended. */
export function describeSpan({ tier, phase, from, to, model, why, lasts }: Span, range: Range): string {
  const [begin, end, took] = [timeIn(range, from), timeIn(range, to), span(to - from)];
  const name = displayName(tier);
  const loading = phase === 'loading';
  const what = lasts
    ? loading
      ? `${name} has been loading since ${begin}`
      : `${name} has been loaded since ${begin}`
    : loading
      ? `${name} was loading from ${begin} to ${end} (${took})`
      : `${name} was loaded from ${begin} to ${end} (${took})`;
  const facts = model === null ? `${what}.` : `${what}, with ${model}.`;
  const begun = facts.charAt(0).toUpperCase() + facts.slice(1);
  return why === null ? begun : `${begun} ${sentence(why)}`;
}

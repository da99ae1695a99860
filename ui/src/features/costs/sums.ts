import { decimal } from '../../lib/format';
import { language } from '../../lib/language';
import type { LedgerEntry, RequestCosts } from '../../platform/openapi';

/** US dollars. A request often costs less than a cent. */
export function dollars(amount: number | null | undefined): string {
  if (amount === null || amount === undefined) return '–';
  const digits = Math.abs(amount) > 0 && Math.abs(amount) < 0.01 ? 4 : 2;
  const text = Math.abs(amount).toLocaleString(language(), {
    style: 'currency',
    currency: 'USD',
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
  return `${amount < 0 ? '−' : ''}${text}`;
}

/** Watt-hours; `~` marks an estimate. */
export function energy({ measured_joules, estimated_joules }: RequestCosts): string {
  if (estimated_joules === null) return '–';
  const hours = (measured_joules + estimated_joules) / 3600;
  const figure = decimal(hours, hours < 100 ? 2 : 0);
  return estimated_joules > 0 ? `~${figure} Wh` : `${figure} Wh`;
}

type Sum = Pick<RequestCosts, 'requests' | 'prompt_tokens' | 'completion_tokens' | 'paid'>;

const NOTHING: Sum = { requests: 0, prompt_tokens: 0, completion_tokens: 0, paid: 0 };

function plus(one: Sum, { requests, prompt_tokens, completion_tokens, paid }: Sum): Sum {
  return {
    requests: one.requests + requests,
    prompt_tokens: one.prompt_tokens + prompt_tokens,
    completion_tokens: one.completion_tokens + completion_tokens,
    paid: one.paid + paid,
  };
}

export interface Row extends Sum {
  tier: string;
  client: string | null;
}

/** The sums by tier and client, the most tokens first. */
export function byTierAndClient(entries: LedgerEntry[]): Row[] {
  const rows = new Map<string, Row>();
  for (const entry of entries) {
    const { tier, client } = entry;
    const key = JSON.stringify([tier, client]);
    rows.set(key, { ...plus(rows.get(key) ?? NOTHING, entry), tier, client });
  }
  const tokens = (row: Row) => row.prompt_tokens + row.completion_tokens;
  return [...rows.values()].sort((one, other) => tokens(other) - tokens(one));
}

export interface DayColumn extends Sum {
  day: string;
}

/** The sums of what generated text: clouds charge a fraction of their prices for embedding and ranking. */
export function ofText(entries: LedgerEntry[]): Sum {
  return entries.filter(({ tier }) => tier !== 'embedder' && tier !== 'reranker').reduce(plus, NOTHING);
}

/** A column for each of the last days, oldest first, those without requests too. `today` is `2026-11-26`. */
export function columns(entries: LedgerEntry[], days: number, today: string): DayColumn[] {
  const sums = new Map<string, Sum>();
  for (const entry of entries) sums.set(entry.day, plus(sums.get(entry.day) ?? NOTHING, entry));
  const last = Date.parse(`${today}T00:00:00Z`);
  return Array.from({ length: days }, (_, index) => {
    const day = new Date(last - (days - 1 - index) * 86_400_000).toISOString().slice(0, 10);
    return { day, ...(sums.get(day) ?? NOTHING) };
  });
}

/** The day of this computer's calendar. */
export function dayOf(now: Date): string {
  const two = (value: number) => String(value).padStart(2, '0');
  return `${now.getFullYear()}-${two(now.getMonth() + 1)}-${two(now.getDate())}`;
}

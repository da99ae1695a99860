import type { GradeCounts, LearnedLevel, Level, Share } from '../../platform/openapi';
import { displayName } from '../tiers/tiers';

export const LEVELS: Record<Level, string> = { simple: 'Simple', medium: 'Medium', hard: 'Hard' };

const QUESTIONS: Record<Level, string> = {
  simple: 'Simple questions',
  medium: 'Medium questions',
  hard: 'Hard questions',
};

/** The tier that is made for a level. */
const TIER: Record<Level, string> = { simple: 'fast', medium: 'primary', hard: 'heavy' };

const percent = (share: number) => Math.round(share * 100);

/** A rate, never without the number of answers that it is of. */
export function rate({ good, bad }: GradeCounts, share: Share | null | undefined): string {
  return share ? `${percent(share.good)} % of ${good + bad}` : '–';
}

/** Where the true rate lies, at a confidence of 95 %. */
export function interval(share: Share | null | undefined): string {
  return share ? `${percent(share.low)}–${percent(share.high)} %` : '–';
}

const total = ({ good, bad }: GradeCounts) => good + bad;

/** What `auto` has learned about the questions of a level. */
export function learned({ level, own_tier, smaller_tier, routed_as }: LearnedLevel, enough: number): string {
  const questions = QUESTIONS[level];
  if (routed_as !== level)
    return `${questions} go to ${displayName(TIER[routed_as])}, because of your grades.`;
  const grades = Math.max(total(own_tier), total(smaller_tier));
  if (grades < enough) return `${questions}: ${grades} of the ${enough} grades that Auto learns from.`;
  return `${questions} go to ${displayName(TIER[level])}. Your grades don’t change this.`;
}

/** Whether a reset changes anything. */
export function hasLearned(levels: LearnedLevel[]): boolean {
  return levels.some(({ own_tier, smaller_tier }) => total(own_tier) + total(smaller_tier) > 0);
}

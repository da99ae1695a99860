import { count, plural } from '../../lib/format';
import type { Costs, Spent } from '../../platform/openapi';

const TASKS: Record<string, string> = {
  triage: 'Triage',
  compress: 'Compress',
  summarize: 'Summarize',
  brief: 'Brief',
};

const texts = (answers: number) => plural(answers, ['# text', '# texts']);
const tokens = (figure: number) => plural(figure, ['# token', '# tokens']);

/** What tasks have saved and taken, in sentences. */
export function describeCosts({ days, total }: Costs): string[] {
  const active = plural(days.length, ['On one day', 'On # days']);
  const saved =
    total.saved_tokens > 0
      ? `About ${tokens(total.saved_tokens)} didn’t go to a cloud.`
      : 'None of that would have gone to a cloud.';
  const here = `This computer read ${tokens(total.prompt_tokens)} and generated ${count(total.completion_tokens)} for it.`;
  return [`${active}, tasks answered ${texts(total.answers)} here. ${saved}`, here];
}

/** The sums of each task, the most saved first. */
export function ofTasks({ days }: Costs): { task: string; words: string }[] {
  const sums = new Map<string, Pick<Spent, 'answers' | 'saved_tokens'>>();
  for (const { tasks } of days)
    for (const [task, spent] of Object.entries(tasks)) {
      const sum = sums.get(task) ?? { answers: 0, saved_tokens: 0 };
      sums.set(task, {
        answers: sum.answers + spent.answers,
        saved_tokens: sum.saved_tokens + spent.saved_tokens,
      });
    }
  return [...sums]
    .sort(([, one], [, other]) => other.saved_tokens - one.saved_tokens)
    .map(([task, { answers, saved_tokens }]) => ({
      task: TASKS[task] ?? task,
      words: `${texts(answers)}, ${tokens(saved_tokens)} saved`,
    }));
}

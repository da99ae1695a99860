import { count, plural } from '../../lib/format';
import type { ContextUse, LeftOut, WhenFull } from '../../platform/openapi';

/** From which parts of the context, in percent, the meter is shown, and warns. */
const SHOWN = 50;
const NEARLY_FULL = 80;

/** What can be done with a chat that the context does not hold, as choices and as buttons. */
export const CHOICES: { choice: WhenFull; name: string; button: string }[] = [
  { choice: 'refuse', name: 'stop, and let me choose', button: '' },
  { choice: 'drop', name: 'leave out the oldest messages', button: 'Leave Out Oldest Messages' },
  { choice: 'summarize', name: 'summarize the oldest messages', button: 'Summarize Oldest Messages' },
];

/** How full the context is, once that matters. */
export function describeUse(used: ContextUse | null): { text: string; warning: boolean } | null {
  if (used === null || used.context_tokens <= 0) return null;
  const tokens = used.prompt_tokens + used.answer_tokens;
  const percent = Math.floor((tokens * 100) / used.context_tokens);
  if (percent < SHOWN) return null;
  const warning = percent >= NEARLY_FULL;
  const of = `${count(tokens)} of ${count(used.context_tokens)} tokens`;
  const text = warning ? `This chat nearly fills the context: ${of}.` : `Context ${percent} % full: ${of}.`;
  return { text, warning };
}

/** One sentence on what an answer's prompt was without. */
export function describeLeftOut({ messages, summary, fallback }: LeftOut): string {
  if (summary === null)
    return plural(messages, [
      'Answered without the oldest message.',
      'Answered without the oldest # messages.',
    ]);
  return fallback
    ? plural(messages, [
        'The oldest message was summarized by rule.',
        'The oldest # messages were summarized by rule.',
      ])
    : plural(messages, ['The oldest message was summarized.', 'The oldest # messages were summarized.']);
}

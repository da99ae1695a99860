import type { Kind } from '../../platform/api';

/** What a kind of happening is called, and how it is coloured. */
export const KINDS: Record<Kind, { label: string; tone: 'quiet' | 'ok' | 'warn' | 'danger' }> = {
  load: { label: 'Load', tone: 'quiet' },
  ready: { label: 'Ready', tone: 'ok' },
  unload: { label: 'Unload', tone: 'quiet' },
  refusal: { label: 'Refused', tone: 'warn' },
  failure: { label: 'Failed', tone: 'danger' },
  crash: { label: 'Crash', tone: 'danger' },
  alarm: { label: 'Alarm', tone: 'warn' },
  calm: { label: 'Calm', tone: 'ok' },
  step_down: { label: 'Step down', tone: 'warn' },
  pause: { label: 'Pause', tone: 'quiet' },
  resume: { label: 'Resume', tone: 'quiet' },
  note: { label: 'Note', tone: 'quiet' },
};

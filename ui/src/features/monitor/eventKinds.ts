import type { Kind } from '../../platform/openapi';

/** The label and color of each kind of event. */
export const EVENT_KINDS: Record<Kind, { label: string; tone: 'quiet' | 'ok' | 'warn' | 'danger' }> = {
  load: { label: 'Load', tone: 'quiet' },
  ready: { label: 'Ready', tone: 'ok' },
  unload: { label: 'Unload', tone: 'quiet' },
  refusal: { label: 'Refused', tone: 'warn' },
  failure: { label: 'Failed', tone: 'danger' },
  crash: { label: 'Crash', tone: 'danger' },
  alarm: { label: 'Alarm', tone: 'warn' },
  calm: { label: 'Recovered', tone: 'ok' },
  step_down: { label: 'Step down', tone: 'warn' },
  pause: { label: 'Pause', tone: 'quiet' },
  resume: { label: 'Resume', tone: 'quiet' },
  note: { label: 'Note', tone: 'quiet' },
};

import { decimal } from '../../lib/format';
import type { Sampling } from '../../platform/openapi';

/** A value by which tokens are chosen. */
export interface SamplingValue {
  name: keyof Sampling;
  label: string;
  help: string;
  min?: number;
  max: number;
  step: string;
  /** llama.cpp's default. */
  engine: number;
}

export const SAMPLING: SamplingValue[] = [
  {
    name: 'temperature',
    label: 'Temperature',
    help: 'Higher is more varied; 0 always takes the likeliest token.',
    max: 5,
    step: '0.1',
    engine: 0.8,
  },
  {
    name: 'top_k',
    label: 'Top K',
    help: 'Choose among this many of the likeliest tokens; 0 for all.',
    max: 1000,
    step: '1',
    engine: 40,
  },
  {
    name: 'top_p',
    label: 'Top P',
    help: 'Choose among the likeliest tokens that together have this probability.',
    max: 1,
    step: '0.05',
    engine: 0.95,
  },
  {
    name: 'min_p',
    label: 'Min P',
    help: 'Leave out tokens below this part of the likeliest one’s probability.',
    max: 1,
    step: '0.01',
    engine: 0.05,
  },
  {
    name: 'repeat_penalty',
    label: 'Repeat penalty',
    help: 'Above 1, recent tokens become less likely.',
    min: 0.5,
    max: 2,
    step: '0.05',
    engine: 1,
  },
  {
    name: 'presence_penalty',
    label: 'Presence penalty',
    help: 'Above 0, tokens that appeared recently become less likely.',
    min: -2,
    max: 2,
    step: '0.1',
    engine: 0,
  },
  {
    name: 'frequency_penalty',
    label: 'Frequency penalty',
    help: 'Above 0, tokens become less likely each time they appear.',
    min: -2,
    max: 2,
    step: '0.1',
    engine: 0,
  },
];

/** A value of the host, which counts in single precision, as a person writes it. */
export function shortNumber(value: number): string {
  return String(Number(value.toPrecision(6)));
}

/** The same in the language of the window, for where it is only shown. */
export function shownNumber(value: number): string {
  return decimal(Number(shortNumber(value)), 0, 6);
}

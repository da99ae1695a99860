import type { BreakEvenInputs, CostsConfig } from '../../platform/openapi';

export type Price = keyof CostsConfig;

/** What the configuration keeps. */
export const PRICES: { key: Price; label: string; help: string }[] = [
  {
    key: 'cloud_input_price',
    label: 'Cloud, tokens in',
    help: 'US dollars per million prompt tokens, at the cloud provider you compare with.',
  },
  {
    key: 'cloud_output_price',
    label: 'Cloud, tokens out',
    help: 'US dollars per million answer tokens.',
  },
  { key: 'kwh_price', label: 'Electricity', help: 'US dollars per kilowatt-hour.' },
  {
    key: 'busy_watts',
    label: 'Power while answering',
    help: 'Watts that this computer draws. Used when it doesn’t measure its energy.',
  },
];

export type Input = keyof BreakEvenInputs;

/** What the break-even is calculated from, in the order of its form. */
export const INPUTS: { key: Input; label: string; unit: string }[] = [
  { key: 'machine_price', label: 'Price of the machine', unit: '$' },
  { key: 'kwh_price', label: 'Kilowatt-hour', unit: '$' },
  { key: 'idle_watts', label: 'Power while idle', unit: 'W' },
  { key: 'busy_watts', label: 'Power while answering', unit: 'W' },
  { key: 'hours_on', label: 'Hours on per day', unit: 'h a day' },
  { key: 'hours_busy', label: 'Of that, time answering', unit: 'h a day' },
  { key: 'prompt_tokens', label: 'Tokens in', unit: 'a day' },
  { key: 'answer_tokens', label: 'Tokens out', unit: 'a day' },
  { key: 'cloud_input_price', label: 'Cloud, million tokens in', unit: '$' },
  { key: 'cloud_output_price', label: 'Cloud, million tokens out', unit: '$' },
  { key: 'local_share', label: 'Share that is local', unit: '%' },
];

/** Whether the configuration keeps an input. */
export function isPrice(key: Input): key is Input & Price {
  return !['hours_on', 'hours_busy', 'prompt_tokens', 'answer_tokens', 'local_share'].includes(key);
}

/** The inputs, if all of them are filled in. The form has the share in percent. */
export function complete(filled: Partial<Record<Input, number | null>>): BreakEvenInputs | null {
  const inputs: Partial<BreakEvenInputs> = {};
  for (const { key } of INPUTS) {
    const value = filled[key];
    if (value === undefined || value === null || !Number.isFinite(value)) return null;
    inputs[key] = key === 'local_share' ? value / 100 : value;
  }
  return inputs as BreakEvenInputs;
}

import type { Pressure, Ram } from '../../platform/api';

export function usedRam(ram: Ram): number {
  return Math.max(ram.total_bytes - ram.available_bytes, 0);
}

export const TONE: Record<Pressure, 'calm' | 'warning' | 'critical'> = {
  normal: 'calm',
  warning: 'warning',
  critical: 'critical',
};

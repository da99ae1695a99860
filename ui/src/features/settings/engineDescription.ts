/** Describes engines other than Tierbar's own. */
import type { Engine } from '../../platform/openapi';

export interface EngineDescription {
  label: string;
  /** The endpoint's URL, or the command line. */
  value: string;
  help: string;
  /** Whether the engine loads a model on this computer. */
  loads: boolean;
}

/** Returns `null` for Tierbar's own engine. */
export function describeEngine(engine: Engine): EngineDescription | null {
  if (typeof engine === 'string') return null;
  if ('endpoint' in engine) {
    return {
      label: 'Endpoint',
      value: engine.endpoint,
      help: 'A server that runs the model. Its key and prices are under Cloud.',
      loads: false,
    };
  }
  return {
    label: 'Command',
    value: engine.command.map(quote).join(' '),
    help: `A program that runs the model, with ${engine.memory} of memory reserved. Change it in config.toml.`,
    loads: true,
  };
}

function quote(argument: string): string {
  return /^[\w./:=,@%+{}-]+$/.test(argument) ? argument : `'${argument.replaceAll("'", "'\\''")}'`;
}

/** Tiers whose engine is not Tierbar's own, in words. They are changed in the file alone. */
import type { Engine } from '../../platform/api';

export interface EngineWords {
  what: string;
  which: string;
  help: string;
  /** Whether something is loaded for it here. */
  loads: boolean;
}

export function engineWords(engine: Engine): EngineWords | null {
  if (typeof engine === 'string') return null;
  if ('endpoint' in engine) {
    return {
      what: 'Answers at',
      which: engine.endpoint,
      help: 'Nothing is loaded for it here. Set in config.toml.',
      loads: false,
    };
  }
  return {
    what: 'Runs a command of yours:',
    which: engine.command.map(quoted).join(' '),
    help: `Planned at ${engine.memory}, as you have said. Set in config.toml.`,
    loads: true,
  };
}

function quoted(argument: string): string {
  return /^[\w./:=,@%+{}-]+$/.test(argument) ? argument : `'${argument.replaceAll("'", "'\\''")}'`;
}

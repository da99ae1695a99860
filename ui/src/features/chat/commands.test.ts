import { describe, expect, it } from 'vitest';
import { COMMANDS, readInput, suggest } from './commands';

describe('a draft', () => {
  it('is a command, a message, or neither', () => {
    expect(readInput('/retry ')).toEqual({ kind: 'command', name: 'retry', argument: '' });
    expect(readInput('/Model  fast')).toEqual({ kind: 'command', name: 'model', argument: 'fast' });
    expect(readInput('/instructions Be kind.\nAlways.')).toMatchObject({ argument: 'Be kind.\nAlways.' });
    expect(readInput('/clear my desk')).toMatchObject({
      kind: 'refused',
      why: expect.stringContaining('/clear takes no words'),
    });
    expect(readInput('/dance now')).toMatchObject({
      kind: 'refused',
      why: expect.stringContaining('no command /dance'),
    });
    expect(readInput('Why /retry?')).toEqual({ kind: 'message', text: 'Why /retry?' });
    expect(readInput('/usr/bin is what?')).toMatchObject({ kind: 'message' });
    expect(readInput('/ alone')).toMatchObject({ kind: 'message' });
    expect(readInput('//dance')).toEqual({ kind: 'message', text: '/dance' });
  });

  it('is completed with commands, then with names', () => {
    const labels = (draft: string) => suggest(draft, ['auto', 'fast']).map(({ label }) => label);
    expect(labels('/')).toHaveLength(COMMANDS.length);
    expect(labels('/con')).toEqual(['/continue']);
    expect(labels('/model ')).toEqual(['auto', 'fast']);
    expect(labels('/model f')).toEqual(['fast']);
    expect(labels('/retry now')).toEqual([]);
    expect(labels('a /re')).toEqual([]);
    expect(suggest('/m', [])).toMatchObject([{ draft: '/model ', runs: false }]);
  });
});

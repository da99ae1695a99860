import { describe, expect, it } from 'vitest';
import type { Role } from '../../platform/openapi';
import { branchOf, lastBelow, type Message, shownMessage, turnsOf, unsent } from './turns';

function message(id: number, parent: number | null, role: Role, content: string): Message {
  return { ...unsent(content, parent), id, role };
}

describe('turns', () => {
  const messages = [
    message(1, null, 'system', 'be brief'),
    message(2, 1, 'user', 'one?'),
    message(3, 2, 'assistant', 'one'),
    message(4, 2, 'assistant', 'uno'),
    message(5, 4, 'user', 'two?'),
    message(6, 3, 'user', 'three?'),
  ];
  const shown = (leaf: number | null) =>
    turnsOf(messages, leaf).map((turn) => [turn.question?.content, turn.shown?.content]);

  it('are those of the shown branch, each with all answers to its question', () => {
    expect(shown(5)).toEqual([
      ['one?', 'uno'],
      ['two?', undefined],
    ]);
    expect(shown(6)).toEqual([
      ['one?', 'one'],
      ['three?', undefined],
    ]);
    expect(turnsOf(messages, 5)[0]?.answers.map(({ content }) => content)).toEqual(['one', 'uno']);
    expect(shown(null)).toEqual([]);
  });

  it('have all versions of their question', () => {
    const edited = [...messages, message(7, 1, 'user', 'uno?')];
    const versions = turnsOf(edited, 5).map(({ questions }) => questions.map(({ content }) => content));
    expect(versions).toEqual([['one?', 'uno?'], ['two?']]);
  });

  it('show the newest answer of a question that is the leaf', () => {
    expect(shown(2)).toEqual([['one?', 'uno']]);
  });

  it('end with the question that is on its way', () => {
    const sending = turnsOf([...messages, unsent('now?', 4)], 4);
    expect(sending.at(-1)).toMatchObject({ question: { content: 'now?' }, answers: [], shown: null });
    expect(turnsOf([unsent('first?', null)], null)).toHaveLength(1);
  });

  it('keep an answer without a question', () => {
    expect(turnsOf([message(1, null, 'assistant', 'hello')], 1)).toMatchObject([
      { question: null, answers: [{ content: 'hello' }] },
    ]);
  });
});

describe('a branch', () => {
  it('is followed to its newest message', () => {
    const messages = [
      message(1, null, 'user', 'a'),
      message(2, 1, 'assistant', 'b'),
      message(3, 2, 'user', 'c'),
      message(4, 2, 'user', 'd'),
    ];
    expect(lastBelow(messages, 1)).toBe(4);
    expect(lastBelow(messages, 3)).toBe(3);
  });

  it('ends where parents go round in a circle', () => {
    const messages = [message(1, 2, 'user', 'a'), message(2, 1, 'assistant', 'b')];
    expect(branchOf(messages, 2)).toHaveLength(2);
  });
});

describe('a stored message', () => {
  it('has its text and its reasoning apart', () => {
    const stored = shownMessage({
      id: 7,
      parent: null,
      role: 'assistant',
      tier: 'primary',
      model: null,
      why: null,
      instead_of: 'cloud',
      finish: 'stop',
      decode_tokens_per_second: null,
      time_to_first_token_ms: null,
      times: null,
      experts: null,
      context: null,
      left_out: null,
      parts: [
        { type: 'reasoning', text: 'Hm.' },
        { type: 'tool_call', id: '1', name: 'look', arguments: '{}' },
        { type: 'tool_result', id: '1', text: 'Paris', failed: false },
        { type: 'text', text: 'Pa' },
        { type: 'text', text: 'ris' },
      ],
    });
    expect(stored).toMatchObject({ id: 7, content: 'Paris', reasoning: 'Hm.', insteadOf: 'cloud' });
    expect(stored.tools).toEqual([
      { id: '1', name: 'look', arguments: '{}', result: 'Paris', failed: false },
    ]);
  });
});

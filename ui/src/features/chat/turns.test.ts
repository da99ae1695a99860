import { describe, expect, it } from 'vitest';
import type { Role } from '../../platform/api';
import { type Message, promptOf, shownAnswer, turnsOf } from './turns';

let key = 0;
function message(role: Role, content: string): Message {
  key += 1;
  return {
    key,
    role,
    content,
    saved: true,
    loadMs: null,
    why: null,
    insteadOf: null,
    tier: null,
    model: null,
    finish: null,
    decode_tokens_per_second: null,
    time_to_first_token_ms: null,
  };
}
const words = (prompt: { content: string }[]) => prompt.map(({ content }) => content);

describe('turns', () => {
  const messages = [
    message('system', 'be brief'),
    message('user', 'one?'),
    message('assistant', 'one'),
    message('assistant', 'uno'),
    message('user', 'two?'),
  ];
  const turns = turnsOf(messages);

  it('gather the answers to one question as alternatives', () => {
    expect(
      turns.map((turn) => [turn.question?.content, ...turn.answers.map((answer) => answer.content)]),
    ).toEqual([['one?', 'one', 'uno'], ['two?']]);
  });

  it('show the newest answer unless another was chosen', () => {
    const turn = turns[0] as (typeof turns)[0];
    expect(shownAnswer(turn, undefined)?.content).toBe('uno');
    expect(shownAnswer(turn, 0)?.content).toBe('one');
    expect(shownAnswer(turn, 7)?.content).toBe('uno');
  });

  it('keep an answer without a question', () => {
    expect(turnsOf([message('assistant', 'hello')])).toMatchObject([
      { question: null, answers: [{ content: 'hello' }] },
    ]);
  });

  it('become a prompt with one answer each: the one that is shown', () => {
    expect(words(promptOf(messages, {}))).toEqual(['be brief', 'one?', 'uno', 'two?']);
    expect(words(promptOf(messages, { [turns[0]?.key as number]: 0 }))).toEqual([
      'be brief',
      'one?',
      'one',
      'two?',
    ]);
  });

  it('leave out the answer that is asked for once more, and empty ones', () => {
    expect(words(promptOf(messages.slice(0, 4), {}))).toEqual(['be brief', 'one?']);
    const empty = [message('user', 'a'), message('assistant', ''), message('user', 'b')];
    expect(words(promptOf(empty, {}))).toEqual(['a', 'b']);
  });
});

import { describe, expect, it } from 'vitest';
import { splitThinking } from './thinking';

const finished = (text: string) => splitThinking(text, false);
const growing = (text: string) => splitThinking(text, true);

describe('thinking within an answer', () => {
  it.each(['think', 'thinking'])('is split off between <%s> tags', (name) => {
    expect(finished(`\n<${name}>\nHm.\n</${name}>\n\nHi`)).toEqual({
      reasoning: 'Hm.',
      text: 'Hi',
      isOpen: false,
    });
  });

  it('is split off only at the beginning', () => {
    for (const text of ['Write <think>x</think>.', '```\n<think>\nx\n</think>\n```', '<thinker>x</thinker>'])
      expect(finished(text)).toEqual({ reasoning: '', text, isOpen: false });
  });

  it('may have begun with the prompt', () => {
    for (const text of ['Hm.\n</think>\n\nHi', 'Hm.</think>\r\nHi'])
      for (const split of [finished, growing])
        expect(split(text)).toEqual({ reasoning: 'Hm.', text: 'Hi', isOpen: false });
    for (const text of [
      'Close it with </think>, then go on.',
      'Begin with <think>\nand end with </think>\n.',
      'a</think>\nb</think>\nc',
      '```\n</think>\n```',
    ])
      expect(finished(text)).toEqual({ reasoning: '', text, isOpen: false });
  });

  it('may be nested, and ends with the tag that it began with', () => {
    expect(finished('<think>a<think>b</think>c</think>d').reasoning).toBe('a<think>b</think>c');
    expect(finished('<think>a</thinking>b</think>c').text).toBe('c');
  });

  it('goes on after a tag in a code fence', () => {
    expect(finished('<think>a\n```\n</think>\n```\nb</think>c')).toMatchObject({
      reasoning: 'a\n```\n</think>\n```\nb',
      text: 'c',
    });
  });

  it('ends within a fence that has no end', () => {
    expect(finished('<think>a\n```\nb</think>c').text).toBe('c');
    // The answer's own fence is not taken for its end.
    expect(finished('<think>a\n```\nb</think>\n```js\nc\n```').text).toBe('```js\nc\n```');
  });

  it('is never shown as the answer, at any length', () => {
    const text = '<think>\nOne two.\n</think>\n\nThree';
    for (let end = 1; end <= text.length; end += 1) {
      const { reasoning, text: answer, isOpen } = growing(text.slice(0, end));
      expect(reasoning + answer).not.toMatch(/[<>]/);
      expect('Three'.startsWith(answer)).toBe(true);
      expect(isOpen).toBe(end >= '<think>'.length && end < text.indexOf('</think>') + '</think>'.length);
    }
  });

  it('is all there is when the answer ends before it', () => {
    expect(finished('<think>Hm')).toEqual({ reasoning: 'Hm', text: '', isOpen: false });
    expect(growing('<think>Hm')).toEqual({ reasoning: 'Hm', text: '', isOpen: true });
  });

  it('keeps a word that only begins like the tag', () => {
    expect(growing('<th').text).toBe('');
    expect(finished('<th').text).toBe('<th');
    expect(growing('<that').text).toBe('<that');
  });
});

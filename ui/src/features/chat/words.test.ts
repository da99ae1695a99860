import { describe, expect, it } from 'vitest';
import { findMessages, placeOf } from './find';
import { rangesOf } from './marks';
import { type Message, type Turn, unsent } from './turns';
import { fold, hitsOf, patternOfPhrase, patternsOfSearch } from './words';

const found = (text: string, patterns: RegExp[]) =>
  hitsOf(text, patterns).map(([from, to]) => text.slice(from, to));

describe('the words of a search', () => {
  it('are found at the beginning of words, and anywhere without spaces between them', () => {
    expect(found('a concat cat', patternsOfSearch('CAT'))).toEqual(['cat']);
    expect(found('東京towerは高い', patternsOfSearch('京'))).toEqual(['京']);
    expect(found('東京towerは高い', patternsOfSearch('tower 高い'))).toEqual(['tower', '高い']);
    expect(found('한국어를 배우고', patternsOfSearch('국어 배'))).toEqual(['국어', '배']);
  });

  it('are compared without accents, whole syllables alone', () => {
    expect(fold('Genève')).toBe('geneve');
    expect(found('한', patternsOfSearch('하'))).toEqual([]);
  });
});

describe('a phrase', () => {
  it('is found anywhere, whatever it is made of', () => {
    expect(found('a.b axb A.B', patternOfPhrase('a.b'))).toEqual(['a.b', 'A.B']);
    expect(found('so  many\nwords', patternOfPhrase(' y w '))).toEqual(['y\nw']);
    expect(patternOfPhrase('  ')).toEqual([]);
  });

  it('is found across elements', () => {
    const element = document.createElement('div');
    element.innerHTML = '<p>one <b>tw</b>o three</p><p>two</p>';
    const ranges = rangesOf(element, patternOfPhrase('two'));
    expect(ranges.map(String)).toEqual(['two', 'two']);
    expect(ranges[0]?.startContainer.parentElement?.tagName).toBe('B');
  });

  it('is found in the messages of the shown branch', () => {
    const message = (id: number, content: string): Message => ({ ...unsent(content, null), id });
    const turn = (key: number, question: string, shown: string): Turn => {
      const [asked, answered] = [message(key, question), message(key + 1, shown)];
      return { key, question: asked, questions: [asked], answers: [answered], shown: answered };
    };
    const turns = [turn(1, 'Which rivers?', 'The **Rhône**\nand more'), turn(3, 'More', 'None')];
    expect(findMessages(turns, 'rhone and')).toEqual([{ turn: 1, message: 2 }]);
    expect(findMessages(turns, 'more').map(({ message }) => message)).toEqual([2, 3]);
    expect(findMessages(turns, ' ')).toEqual([]);
    expect(placeOf(turns, 4)).toEqual({ turn: 3, message: 4 });
    expect(placeOf(turns, 9)).toBeNull();
  });
});

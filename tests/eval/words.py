"""Content words of English texts, by their stems, and the texts of the corpus."""

import html
import re
import sqlite3

from host import ROOT

CORPUS = ROOT / "tests/eval/corpus"
# Words that say nothing of a text's subject, and those that only ask.
FUNCTION_WORDS = """
a about above after again against all along already also although always am among an and another any are aren as at away be because been
before behind being below beside besides between both but by came can cannot could did didn do does doesn doing don done down during each
either else enough ever every few first for from further gave get give given go goes gone got had has have having he her here hers herself
him himself his how however i if in instead into is isn it its itself just kind last least less let like made make makes many may me mean
might mine more most much must my myself neither never no nobody none nor not nothing now of off often on once one only onto or other others
our ours out over own part per put quite rather really s said same say says see seem seems shall she should since so some somebody someone
something soon still such t take taken than that the their theirs them themselves then there these they thing things this those though
through thus till to together too took toward towards under until up upon us used very was wasn way we well went were what whatever when
where whether which while who whole whom whose why will with within without would yet you your yours yourself
"""
# The search by words compares the same stems.
INDEX = sqlite3.connect(":memory:")
INDEX.executescript("""
CREATE VIRTUAL TABLE texts USING fts5 (text, tokenize = 'porter unicode61 remove_diacritics 2');
CREATE VIRTUAL TABLE terms USING fts5vocab (texts, 'row');
""")
# How much of a text counts as the passage around an answer: with it, nearly as many words as a passage has.
WORDS_AROUND = 75
# The largest share of a question's content words that may stand there.
AVOIDED = 0.25


def stems(text):
    INDEX.execute("DELETE FROM texts")
    INDEX.execute("INSERT INTO texts VALUES (?)", (text,))
    return {term for (term,) in INDEX.execute("SELECT term FROM terms")}


FUNCTION_STEMS = stems(FUNCTION_WORDS)


def content(text):
    """The stems of a text's content words."""
    return stems(text) - FUNCTION_STEMS


def text_of(file):
    """A text as a search would show it, roughly: without markup, and with single spaces."""
    text = file.read_text()
    if file.suffix == ".html":
        text = html.unescape(re.sub(r"<[^>]*>", " ", text))
    return " ".join(text.split())


TEXTS = [text_of(file) for file in sorted(CORPUS.iterdir())]


def shared(line):
    """The share of a question's content words that stand in its answer or close to it."""
    answer = " ".join(line["answer"].split())
    text = next(text for text in TEXTS if answer in text)
    before, behind = text.split(answer, 1)
    around = [*before.split()[-WORDS_AROUND:], answer, *behind.split()[:WORDS_AROUND]]
    asked = content(line["question"])
    return len(asked & content(" ".join(around))) / len(asked)


def avoids(line):
    """Whether a question avoids the words of its answer, so that they alone do not find it."""
    return shared(line) <= AVOIDED

#!/usr/bin/env python3
"""Checks the questions about the corpus: ids and sets in order, each answer in exactly one place of one text, and how many avoid its words.

`tests/eval/questions.py --shared` lists each English question with the share of its content words that stand close to its answer.
"""

import sys
from collections import Counter

from host import lines, share, table
from words import TEXTS, avoids, shared


def check(questions):
    """Ends with the first question that breaks a rule."""
    for number, line in enumerate(questions, 1):
        place = f"question {line['id']}"
        assert line["id"] == number, place
        assert line["set"] == ("dev" if number % 2 else "test"), place
        count = sum(text.count(" ".join(line["answer"].split())) for text in TEXTS)
        assert count == 1, f"{place}: its answer stands in {count} places"
    assert len({line["question"] for line in questions}) == len(questions), "two questions are the same"


def main():
    questions = lines("questions.jsonl")
    check(questions)
    count = Counter(line.get("language", "en") for line in questions)
    print(", ".join(f"{language} {number}" for language, number in count.most_common()), "\n")
    english = [line for line in questions if "language" not in line]
    rows = []
    for which in ("dev", "test"):
        part = [line for line in english if line["set"] == which]
        rows.append([which, share(sum(map(avoids, part)), len(part)), f"{sum(map(shared, part)) / len(part):.0%}"])
    print(table(["questions in English", "avoid their answers' words", "mean share of words close to the answer"], rows))
    if "--shared" in sys.argv:
        for line in english:
            print(f"{line['id']} {shared(line):.0%} {line['question']}")


if __name__ == "__main__":
    main()

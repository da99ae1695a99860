#!/usr/bin/env python3
"""Checks the questions about the corpus: ids and sets in order, and each answer in exactly one place of one text."""

import html
import re
from collections import Counter

from documents import CORPUS
from host import lines


def text_of(file):
    """A text as a search would show it, roughly: without markup, and with single spaces."""
    text = file.read_text()
    if file.suffix == ".html":
        text = html.unescape(re.sub(r"<[^>]*>", " ", text))
    return " ".join(text.split())


def main():
    texts = [text_of(file) for file in sorted(CORPUS.iterdir())]
    questions = lines("questions.jsonl")
    for number, line in enumerate(questions, 1):
        place = f"question {line['id']}"
        assert line["id"] == number, place
        assert line["set"] == ("dev" if number % 2 else "test"), place
        count = sum(text.count(" ".join(line["answer"].split())) for text in texts)
        assert count == 1, f"{place}: its answer stands in {count} places"
    count = Counter(line.get("language", "en") for line in questions)
    print(", ".join(f"{language} {number}" for language, number in count.most_common()))


main()

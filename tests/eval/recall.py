#!/usr/bin/env python3
"""How often a search by words finds a place in PDFs, with the text that Tierbar reads and with poppler's, in the same index.

    pip install pypdfium2; apt install poppler-utils; make build
    tests/eval/recall.py [--files N] [--questions N] FOLDER...

The PDFs of the folders, drawn by chance, are added to one host, and the text that pdftotext reads of them to another, which cuts it into
passages and indexes it in the same way. The questions are of neither: of each file, random runs of 12 words that PDFium reads on one page.
Four words of a run are the query. It is found if one of the first five passages is of that file and has ten of the run's words.
"""

import argparse
import collections
import hashlib
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import documents
from host import ROOT, share
from pdfs import digest, read_poppler, words

RUN, QUERY, ENOUGH = 12, 4, 10
PAGES = """
import json, sys, pypdfium2
pdf = pypdfium2.PdfDocument(sys.argv[1])
pdf.init_forms()
print(json.dumps([page.get_textpage().get_text_range() for page in pdf]))
"""


def pages(path):
    try:
        done = subprocess.run([sys.executable, "-c", PAGES, str(path)], capture_output=True, timeout=200)
    except subprocess.TimeoutExpired:
        return []
    return [words(page) for page in json.loads(done.stdout)] if done.returncode == 0 else []


def asked(word):
    return len(word) > 3 and word.isalpha()


def draw_questions(draw, path, count):
    """Runs of words with a query each."""
    runs = [page[at:at + RUN] for page in pages(path) for at in range(len(page) - RUN + 1)]
    runs = [run for run in runs if len(set(filter(asked, run))) >= QUERY]
    chosen = draw.sample(runs, min(count, len(runs)))
    return [(run, draw.sample(sorted(set(filter(asked, run))), QUERY)) for run in chosen]


def is_found(passages, name, run):
    wanted = collections.Counter(run)
    return any(pathlib.Path(passage["path"]).stem == name and (wanted & collections.Counter(words(passage["text"]))).total() >= ENOUGH
               for passage in passages)


def search(tierbar, folder, questions):
    """Whether each question is found."""
    with documents.Reader(tierbar, None) as host:
        host.read(folder)
        return [is_found(host.post("/v1/documents/search", {"query": " ".join(query), "limit": documents.PASSAGES})[0]["passages"], name, run)
                for name, run, query in questions]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    parser.add_argument("--tierbar", default=str(ROOT / "target/release/tierbar"))
    parser.add_argument("--files", type=int, default=300)
    parser.add_argument("--questions", type=int, default=2, help="of each file")
    parser.add_argument("--worst", action="store_true", help="name what only poppler's text finds")
    options = parser.parse_args()
    draw = random.Random(5)
    files = {hashlib.sha256(path.read_bytes()).hexdigest()[:16]: path
             for folder in options.folders for path in sorted(folder.rglob("*.pdf")) if path.is_file()}
    questions = []
    with tempfile.TemporaryDirectory() as temporary:
        ours, peers = pathlib.Path(temporary, "ours"), pathlib.Path(temporary, "poppler")
        ours.mkdir()
        peers.mkdir()
        chosen = draw.sample(sorted(files), min(options.files, len(files)))
        for name in chosen:
            (ours / f"{name}.pdf").write_bytes(files[name].read_bytes())
            (peers / f"{name}.txt").write_text(read_poppler(files[name])[0])
            questions += [(name, run, query) for run, query in draw_questions(draw, files[name], options.questions)]
        by_ours, by_poppler = (search(options.tierbar, folder, questions) for folder in (ours, peers))
    print(f"{len(files)} files, {digest(files.values())}")
    print(f"{len(chosen)} files, {len(questions)} questions\n\n| text | recall@5 |\n|---|---|")
    print(f"| ours | {share(sum(by_ours), len(questions))} |\n| poppler's | {share(sum(by_poppler), len(questions))} |")
    print(f"\nours ÷ poppler's: {sum(by_ours) / max(1, sum(by_poppler)):.3f}")
    for (name, run, query), one, other in zip(questions, by_ours, by_poppler):
        if options.worst and other and not one:
            print(f"  {files[name]}: {' '.join(query)} in {' '.join(run)}")


if __name__ == "__main__":
    main()

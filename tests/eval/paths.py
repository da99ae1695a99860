#!/usr/bin/env python3
"""Two whole paths with a real model: each is checked by how it ended, and lists all that was asked of a person on the way.

    tests/eval/paths.py [--model FILE …] [--only mend] [--only papers] [--keep FOLDER]

`mend`: an agent finds out why the test of a real package fails, and mends it. `papers`: a folder of 15 real papers and 15 real mails, of as
many programs as could be found, is added and asked five questions. The package and the folder are made from source packages of PyPI, which
are downloaded into a temporary folder and are not part of Tierbar; where one is gone, its path is skipped.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import agent
import agent_tasks
import documents
from host import ROOT, Host, Subject, share, table
from pdfs import PACKAGES, fetch

MODEL = Path.home() / ".cache/tierbar/models/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"
CONTEXT = 8192

# The package, with its archive's SHA-256, and the line that is broken.
ROMAN = {"roman==5.2": "275fe9f46290f7d0ffaea1c33251b92b8e463ace23660508ceef522e7587cb6f"}
RIGHT, WRONG = "        while n >= integer:", "        while n > integer:"
SOURCE, TESTS = "src/roman/__init__.py", "src/tests.py"
RUN_TESTS = "cd src && python3 -m unittest tests"
# A package that exits while it is imported passes no test.
CHECK = f"{RUN_TESTS} 2>&1 | grep -q ^OK"
REQUEST = f"`{RUN_TESTS}` fails in this folder. Find out why, mend {SOURCE}, and leave {TESTS} as it is."
MEND_SECONDS = 900

MAIL_PARSER = {"mail-parser==4.8.0": "602e659b159652d378b0f9cce2d682bee692bedae72687786e2b2e52eaeb9afc"}
# By the programs that made them.
PAPERS = {
    "dmca.pdf": "Acrobat PDFWriter 3.02",
    "f1040nr.pdf": "a form of the Internal Revenue Service",
    "i1040nr.pdf": "Acrobat Distiller 7.0",
    "kampo.pdf": "Acrobat Distiller 5.0.5, in Japanese",
    "naacl06-shinyama.pdf": "dvipdfm",
    "nlp2004slides.pdf": "Mac OS X 10.3, in Japanese",
    "AutoCad_Diagram.pdf": "AutoCAD",
    "GeoBase_NHNC1_Data_Model_UML_EN.pdf": "Word 2010",
    "Seige_of_Vicksburg_Sample_OCR.pdf": "LuraDocument, a scan with its text",
    "crazyones.pdf": "XeTeX",
    "example.pdf": "Google Docs",
    "indirect-rotation.pdf": "EPSON Scan, a scan with its text",
    "issue-604.pdf": "PDFsharp and iTextSharp, 137 pages",
    "issue-914-xmp-data.pdf": "Adobe PDF Library, in Chinese",
    "pdflatex-outline.pdf": "pdfTeX",
}
MAILS = {
    "mail_malformed_1": "Zimbra",
    "mail_malformed_2": "a server that could not deliver",
    "mail_malformed_3": "unknown, in Spanish",
    "mail_test_1": "unknown, in Russian",
    "mail_test_2": "Microsoft CDO, in Italian",
    "mail_test_3": "Outlook for iOS",
    "mail_test_4": "Outlook Express 6",
    "mail_test_5": "a newsletter, in French",
    "mail_test_6": "a network's notices, in Russian",
    "mail_test_7": "Outlook with MDaemon, in Italian",
    "mail_test_10": "IBM Notes, in Italian",
    "mail_test_12": "Outlook Express 5, in Chinese",
    "mail_test_13": "MailChimp",
    "mail_test_15": "unknown, with a ZIP archive",
    "mail_test_17": "a bank, in Spanish",
}
# Each with the file that answers it, and words of which a right answer has one.
QUESTIONS = [
    ("Which treaties does the Digital Millennium Copyright Act implement?", "dmca.pdf", ["WIPO", "World Intellectual Property"]),
    ("What do Shinyama and Sekine call their technique for discovering relations without human intervention?", "naacl06-shinyama.pdf",
     ["Unrestricted Relation Discovery"]),
    ("Where did the inhabitants of Vicksburg live while mortar shells fell on the city?", "Seige_of_Vicksburg_Sample_OCR.pdf", ["cave"]),
    ("Who leads the webinar on what to do once a disaster has come?", "mail_test_13.eml", ["Serio"]),
    ("Which booking reference number belongs to Fanox's payment of 103,349.35 dollars?", "mail_test_4.eml", ["B210154"]),
]


class Wide(Subject):
    """With room for a file, the report of its tests, and a few steps."""

    def tier(self):
        return super().tier().replace("context = 4096", f"context = {CONTEXT}")


def lay_package(folder, sources):
    """Lays out the package, with the broken line. A check that cannot fail, or cannot hold, ends all."""
    fetch(sources, ROMAN)
    package = next(sources.glob("roman-*/roman-*"))
    shutil.copytree(package, folder, dirs_exist_ok=True)
    if not agent_tasks.passes(folder, CHECK):
        raise SystemExit("the tests of roman fail before anything is broken: is python3 there for commands in the sandbox?")
    source = folder / SOURCE
    text = source.read_text()
    if text.count(RIGHT) != 1:
        raise SystemExit(f"{RIGHT.strip()} is not once in {SOURCE}")
    source.write_text(text.replace(RIGHT, WRONG))
    if agent_tasks.passes(folder, CHECK):
        raise SystemExit("the tests of roman pass although it is broken")
    return (folder / TESTS).read_text()


def mend(tierbar, subject, folder, sources):
    """Whether the package is mended, and the table of it."""
    tests = lay_package(folder, sources)
    asked, steps, end = [], [], "stopped"
    with Host(tierbar, subject) as host:
        began = time.monotonic()
        turn = agent.Turn(host, REQUEST, {"folder": str(folder), "allow": {"reading": True}})
        timer = threading.Timer(MEND_SECONDS, turn.stop)
        timer.start()
        for event in turn.events():
            if event["type"] == "consent":
                asked.append(f"{event['question']['title']} {first_line(event['question']['what'])}")
                turn.allow(event["question"])
            elif event["type"] == "tool_call":
                steps.append(event["name"])
            elif event["type"] in ("finished", "failed"):
                end = event["type"]
        timer.cancel()
        seconds = time.monotonic() - began
    is_unchanged = (folder / TESTS).read_text() == tests
    mended = is_unchanged and agent_tasks.passes(folder, CHECK)
    head = ["the tests pass again", "they are unchanged", "the turn", "steps", "acts asked for", "time"]
    row = [yes(mended), yes(is_unchanged), end, str(len(steps)), str(len(asked)), f"{seconds:.0f} s"]
    return mended, f"{table(head, [row])}\n\nAsked of the person: {REQUEST}\n{told(asked)}"


def lay_papers(folder, sources):
    fetch(sources, {**PACKAGES, **MAIL_PARSER})
    for names, place, ending in ((PAPERS, "papers", ""), (MAILS, "mails", ".eml")):
        (folder / place).mkdir()
        for name in names:
            found = next(path for path in sources.rglob(name) if path.is_file())
            shutil.copy(found, folder / place / f"{name}{ending}")


def has_words(answer, words):
    """Whether a model's answer has one of the words, or its plural. Sentences that a rule chose are not the model's."""
    if "error" in answer or documents.is_by_rule(answer):
        return False
    return any(re.search(rf"\b{re.escape(word)}s?\b", answer["answer"], re.IGNORECASE) for word in words)


def papers(tierbar, subject, folder, sources):
    """Whether all questions were answered, and the table of them."""
    lay_papers(folder, sources)
    if not documents.EMBEDDER.exists():
        raise SystemExit(f"{documents.EMBEDDER} is missing: run `make setup`")
    rows, right = [], 0
    with documents.Reader(tierbar, documents.EMBEDDER, subject) as host:
        passages, reading, _ = host.read(folder)
        (source,) = host.get("/tierbar/v1/documents")["sources"]
        for question, file, words in QUESTIONS:
            found, _ = host.post("/v1/documents/search", {"query": question, "limit": documents.GIVEN})
            places = [Path(passage["path"]).name for passage in found["passages"]]
            answer, seconds = host.post("/v1/documents/ask", {"question": question, "model": "primary", "limit": documents.GIVEN})
            text = answer.get("answer") or f"no answer: {answer['error']['message']}"
            cited = [Path(citation["passage"]["path"]).name for citation in answer.get("citations", [])]
            is_right = has_words(answer, words)
            right += is_right
            place = places.index(file) + 1 if file in places else None
            rows.append([question, str(place or "–"), yes(file in cited), yes(is_right), f"{seconds:.0f} s", first_line(text)])
    head = ["question", "first passage of its file", "cites the file", "has the words", "time", "answer"]
    read = f"{source['indexed']} of {len(PAPERS) + len(MAILS)} files read, {passages} passages in {reading:.0f} s"
    asked = told(["Add the folder", *(question for question, _, _ in QUESTIONS)])
    return right == len(QUESTIONS), f"{read}. Right: {share(right, len(QUESTIONS))}.\n\n{table(head, rows)}\n\nAsked of the person:\n{asked}"


PATHS = {"mend": mend, "papers": papers}


def yes(is_so):
    return "yes" if is_so else "no"


def first_line(text, most=200):
    line = " ".join(text.split()).replace("|", "\\|")
    return line if len(line) <= most else f"{line[:most]}…"


def told(acts):
    return "\n".join(f"{number}. {act}" for number, act in enumerate(acts, 1))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tierbar", default=str(ROOT / "target/release/tierbar"))
    parser.add_argument("--model", action="append", type=Path, help=f"a .gguf file; default: {MODEL.stem}")
    parser.add_argument("--only", action="append", choices=PATHS, help="a path; default: both")
    parser.add_argument("--keep", type=Path, help="a new folder for what the paths leave")
    options = parser.parse_args()
    models = options.model or [MODEL]
    if missing := [str(model) for model in models if not model.exists()]:
        raise SystemExit(f"{', '.join(missing)} is missing: `make setup-models` fetches {MODEL.stem}")
    with tempfile.TemporaryDirectory(prefix="tierbar-paths-") as temporary:
        place = options.keep or Path(temporary, "left")
        for model in models:
            for name in options.only or PATHS:
                folder, sources = place / model.stem / name, Path(temporary, name)
                folder.mkdir(parents=True)
                sources.mkdir(exist_ok=True)
                print(f"## {name}: {model.stem}\n", flush=True)
                try:
                    ended_well, text = PATHS[name](options.tierbar, Wide(model.stem, file=model), folder, sources)
                except subprocess.CalledProcessError as error:
                    print(f"SKIPPED {name}: `{' '.join(map(str, error.cmd))}` ended with {error.returncode}\n", flush=True)
                    continue
                print(f"Ended as it should: **{yes(ended_well)}**\n\n{text}\n", flush=True)


if __name__ == "__main__":
    if sys.version_info < (3, 11, 4):
        raise SystemExit("Python 3.11.4 or later is needed, which unpacks archives safely")
    main()

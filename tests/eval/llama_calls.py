#!/usr/bin/env python3
"""The questions with functions, as llama-server reads the answers: `tests/eval/llama_calls.py MODEL.gguf [RECORDING]`.

RECORDING is what `tests/eval/run --only calls --model MODEL.gguf` has written, by default to target/eval. llama-server is that of
TIERBAR_LLAMA_SERVER, or of `tests/bench`, which is built on first use. It gets the same questions, without randomness. Prints a table with
a row for each form of what the model wrote under Tierbar, and on stderr the answers that the two servers read otherwise.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from calls import FORMS, LABELS, RECORDINGS, WORDS, are_right, ask, form_of, tools
from host import ROOT, START_SECONDS, Server, lines, table

CONTEXT = 4096


def path_of_server():
    named = os.environ.get("TIERBAR_LLAMA_SERVER")
    if named:
        return named
    sys.path.insert(0, str(ROOT / "tests/bench"))
    from peer import get_peer

    return get_peer()


class LlamaServer(Server):
    """llama-server with one model, while the block runs."""

    def __init__(self, path, model):
        self.path, self.model = path, model

    def __enter__(self):
        port = 18432
        self.url = f"http://127.0.0.1:{port}"
        self.log = tempfile.TemporaryFile("w+")
        command = [self.path, "-m", self.model, "--jinja", "-c", str(CONTEXT), "--parallel", "1", "--host", "127.0.0.1", "--port", str(port)]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=subprocess.STDOUT)
        deadline = time.monotonic() + START_SECONDS
        while not self.is_up():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.__exit__()
                self.log.seek(0)
                raise SystemExit(f"llama-server did not start: {self.log.read()[-2000:]}")
            time.sleep(0.1)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def main(model, recording=None):
    recording = Path(recording or RECORDINGS / f"calls-{Path(model).stem}.jsonl")
    if not recording.exists():
        raise SystemExit(f"{recording} is missing: run `tests/eval/run --only calls --model {model}` first")
    recorded = [json.loads(line) for line in recording.read_text().splitlines()]
    offered, questions = tools(), {question["id"]: question for question in lines("calls.jsonl")}
    count = Counter()
    with LlamaServer(path_of_server(), model) as server:
        for ours in recorded:
            question = questions[ours["id"]]
            theirs, _ = ask(server, question, offered)
            cell = question["label"], form_of(ours["raw"], question["tools"])
            wanted = question.get("calls", [])
            count[cell, "answers"] += 1
            count[cell, "same text"] += ours["raw"].strip() == theirs["raw"].strip()
            for name, answer in (("Tierbar", ours), ("llama-server", theirs)):
                count[cell, name, "calls"] += bool(answer["calls"])
                count[cell, name, "right"] += bool(wanted) and are_right(answer["calls"], wanted)
            if ours["calls"] != theirs["calls"]:
                print(f"{ours['id']}: Tierbar {ours['calls']}, llama-server {theirs['calls']} of {theirs['raw']!r}", file=sys.stderr)
    rows = []
    for label in LABELS:
        for form in [*FORMS, WORDS]:
            cell = label, form
            if count[cell, "answers"]:
                pairs = [f"{count[cell, name, 'calls']}, right {count[cell, name, 'right']}" for name in ("Tierbar", "llama-server")]
                rows.append([label, form, str(count[cell, "answers"]), *pairs, str(count[cell, "same text"])])
    print(table(["question", "form of the answer", "answers", "calls by Tierbar", "calls by llama-server", "same text"], rows))


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 3:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])

"""Documents: whether a search finds the passage that holds the answer, and how fast."""

import json
import time
from pathlib import Path

from host import ROOT, Host, Subject, lines, table

EMBEDDER = Path.home() / ".cache/tierbar/models/all-MiniLM-L6-v2.F32.gguf"
PASSAGES = 5
READ_SECONDS = 600


class Reader(Host):
    """A host that searches the documentation of this repository, with an embedder or without one."""

    def __init__(self, tierbar, embedder):
        super().__init__(tierbar, Subject("documents", file=embedder))
        self.embedder = embedder

    def config(self):
        if not self.embedder:
            return ""
        return f"[tiers.embedder]\nmodel = {json.dumps(str(self.embedder))}\n"

    def read(self):
        """Adds the documentation, and returns its passages and the seconds until all of them are read."""
        added, _ = self.post("/tierbar/v1/documents", {"path": str(ROOT / "docs")})
        if "error" in added:
            raise SystemExit(added["error"]["message"])
        began = time.monotonic()
        while time.monotonic() - began < READ_SECONDS:
            documents = self.get("/tierbar/v1/documents")
            (source,) = documents["sources"]
            is_read = source["indexed"] and not source["waiting"] and documents["indexing"]["file"] is None
            if is_read and not (self.embedder and source["without_vectors"]):
                return source["passages"], time.monotonic() - began
            time.sleep(0.05)
        raise SystemExit("the documentation is not read")


def found_at(passages, answer):
    """The place of the first passage that holds the answer, from 1; None if none of them does."""
    words = " ".join(answer.split())
    places = (place for place, passage in enumerate(passages, 1) if words in " ".join(passage["text"].split()))
    return next(places, None)


def measured(tierbar, embedder):
    places, seconds = {"dev": [], "test": []}, []
    with Reader(tierbar, embedder) as host:
        passages, reading = host.read()
        for line in lines("questions.jsonl"):
            answer, took = host.post("/v1/documents/search", {"query": line["question"], "limit": PASSAGES})
            places[line["set"]].append(found_at(answer["passages"], line["answer"]))
            seconds.append(took)
    slow = sorted(seconds)[int(len(seconds) * 0.95)]
    figures = []
    for found in places.values():
        hits = [place for place in found if place]
        figures += [f"{len(hits)} of {len(found)}", f"{sum(1 / place for place in hits) / len(found):.2f}"]
    return [*figures, f"{passages / reading:.0f}", f"{slow * 1000:.0f} ms"]


def measure(tierbar):
    rows = [["words alone (BM25)", *measured(tierbar, None)]]
    if EMBEDDER.exists():
        rows.append([f"words and {EMBEDDER.stem}", *measured(tierbar, EMBEDDER)])
    head = ["search", "recall@5, dev", "MRR, dev", "recall@5, test", "MRR, test", "passages read a second", "p95, with the question's vector"]
    return table(head, rows)

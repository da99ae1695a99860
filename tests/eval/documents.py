"""Documents: whether a search finds the passage that holds the answer, whether an answer cites it, how fast, and what ten thousand
passages cost."""

import json
import random
import re
import subprocess
import tempfile
import time
from pathlib import Path

from host import Host, Subject, lines, share, table
from words import CORPUS

EMBEDDER = Path.home() / ".cache/tierbar/models/all-MiniLM-L6-v2.F32.gguf"
# Questions in other languages mean nothing to an embedder that knows one; these are the signs in the names of those that know many.
MULTILINGUAL = ("multilingual", "bge-m3", "qwen3-embedding", "embeddinggemma", "arctic-embed-l-v2", "jina-embeddings-v3")
PASSAGES = 5
# As many as a model is given for an answer.
GIVEN = 6
READ_SECONDS = 3600
# Of the large collection: as many passages of about a hundred words, under a heading each.
LARGE, PASSAGES_A_FILE, WORDS_A_PASSAGE = 10_000, 100, 100
# Passages of it that the embedder reads once more by itself, in batches as the indexer's.
ALONE, BATCH = 512, 16
# The limits that these figures are held to.
SPEED, QUERY_MS, MEMORY_MIB = 0.9, 50, 100


class Reader(Host):
    """A host that searches documents, with an embedder or without one, and answers from them if it has a subject."""

    def __init__(self, tierbar, embedder, subject=None):
        super().__init__(tierbar, subject or Subject("documents", file=embedder))
        self.embedder, self.answers = embedder, subject is not None

    def config(self):
        tiers = f"[tiers.primary]\n{self.subject.tier()}" if self.answers else ""
        if self.embedder:
            tiers += f"[tiers.embedder]\nmodel = {json.dumps(str(self.embedder))}\n"
        return tiers

    def memory(self):
        """The memory of the host's own process, without its workers, in MiB."""
        size = subprocess.run(["ps", "-o", "rss=", "-p", str(self.process.pid)], capture_output=True, text=True, check=True)
        return int(size.stdout) / 1024

    def read(self, folder, look=0.05):
        """Adds a folder, and returns its passages, the seconds until all of them are read, and the most memory meanwhile."""
        added, _ = self.post("/tierbar/v1/documents", {"path": str(folder)})
        if "error" in added:
            raise SystemExit(added["error"]["message"])
        began, most = time.monotonic(), 0
        while time.monotonic() - began < READ_SECONDS:
            most = max(most, self.memory())
            documents = self.get("/tierbar/v1/documents")
            (source,) = documents["sources"]
            is_read = source["indexed"] and not source["waiting"] and documents["indexing"]["file"] is None
            if is_read and not (self.embedder and source["without_vectors"]):
                return source["passages"], time.monotonic() - began, most
            time.sleep(look)
        raise SystemExit(f"{folder} is not read after {READ_SECONDS} s")


def holds(passage, answer):
    return " ".join(answer.split()) in " ".join(passage["text"].split())


def found_at(passages, answer):
    """The place of the first passage that holds the answer, from 1; None if none of them does."""
    return next((place for place, passage in enumerate(passages, 1) if holds(passage, answer)), None)


def slowest(seconds):
    """The 95th percentile."""
    return sorted(seconds)[int(len(seconds) * 0.95)]


def is_multilingual(embedder):
    return embedder is not None and any(sign in embedder.name.lower() for sign in MULTILINGUAL)


def is_english(line):
    return "language" not in line


def recall(places):
    """How many were found among the first passages, and the mean of 1 ÷ the place."""
    hits = [place for place in places if place]
    return [share(len(hits), len(places)), f"{sum(1 / place for place in hits) / len(places):.2f}"]


def measured(tierbar, embedder):
    """The figures of the questions in the documents' own language, and those of the others if the embedder knows other languages."""
    lines_read = [line for line in lines("questions.jsonl") if is_english(line) or is_multilingual(embedder)]
    found, seconds = [], []
    with Reader(tierbar, embedder) as host:
        passages, reading, _ = host.read(CORPUS)
        for line in lines_read:
            answer, took = host.post("/v1/documents/search", {"query": line["question"], "limit": PASSAGES})
            found.append((line, found_at(answer["passages"], line["answer"])))
            seconds.append(took)
    figures = []
    for part in ("dev", "test"):
        figures += recall([place for line, place in found if line["set"] == part and is_english(line)])
    others = [place for line, place in found if not is_english(line)]
    speed = [f"{passages / reading:.0f}", f"{slowest(seconds) * 1000:.0f} ms"]
    return [*figures, *speed], recall(others) if others else None


def measure(tierbar, embedder):
    rows, others = [["words alone (BM25)", *measured(tierbar, None)[0]]], None
    if embedder.exists():
        figures, others = measured(tierbar, embedder)
        rows.append([f"words and {embedder.stem}", *figures])
    head = ["search", "recall@5, dev", "MRR, dev", "recall@5, test", "MRR, test", "passages read a second", "p95, with the question's vector"]
    text = table(head, rows)
    if others:
        text += "\n\n" + table(["questions in other languages", "recall@5", "MRR"], [[f"words and {embedder.stem}", *others]])
    return text


def measure_citations(tierbar, embedder, subject, most=None):
    """How often an answer of a model cites a passage, and how often one that holds the answer."""
    rows = []
    with Reader(tierbar, embedder if embedder.exists() else None, subject) as host:
        host.read(CORPUS)
        for part in ("dev", "test"):
            asked = [line for line in lines("questions.jsonl") if line["set"] == part and is_english(line)][:most]
            counts = dict.fromkeys(("answered", "given", "citing", "right", "citations", "holding"), 0)
            seconds = []
            for line in asked:
                given, _ = host.post("/v1/documents/search", {"query": line["question"], "limit": GIVEN})
                answer, took = host.post("/v1/documents/ask", {"question": line["question"], "model": "primary", "limit": GIVEN})
                seconds.append(took)
                counts["given"] += found_at(given["passages"], line["answer"]) is not None
                if "error" in answer:
                    # Small models often write nothing. Anything else would be a fault of the set-up.
                    if answer["error"]["code"] != "tier_failed":
                        raise SystemExit(answer["error"]["message"])
                    continue
                cited = [citation["passage"] for citation in answer["citations"]]
                holding = sum(holds(passage, line["answer"]) for passage in cited)
                counts["answered"] += 1
                counts["citing"] += bool(cited)
                counts["right"] += bool(holding)
                counts["citations"] += len(cited)
                counts["holding"] += holding
            rows.append([
                part, share(counts["answered"], len(asked)), share(counts["given"], len(asked)), share(counts["citing"], len(asked)),
                share(counts["right"], len(asked)), share(counts["holding"], counts["citations"]), f"{sorted(seconds)[len(seconds) // 2]:.1f} s",
            ])
    head = ["set", "answered", f"the answer is among the {GIVEN} passages given", "cites a passage", "cites one that holds the answer",
            "of all citations, those that hold it", "median time"]
    return table(head, rows)


def write_large(folder, passages):
    """Writes documents from the words of the corpus, the same each time; no passage is like another."""
    draw = random.Random(22)
    text = " ".join(file.read_text() for ending in ("md", "txt") for file in sorted(CORPUS.glob(f"*.{ending}")))
    words = re.findall(r"[A-Za-z]{2,}", text)
    for first in range(0, passages, PASSAGES_A_FILE):
        sections = []
        for number in range(first, min(first + PASSAGES_A_FILE, passages)):
            at = draw.randrange(len(words) - 2 * WORDS_A_PASSAGE)
            other = draw.randrange(len(words) - WORDS_A_PASSAGE)
            taken = words[at:at + WORDS_A_PASSAGE // 2] + words[other:other + WORDS_A_PASSAGE // 2]
            sections.append(f"## Section {number}\n\n{' '.join(taken)}.\n")
        Path(folder, f"{first:05}.md").write_text("\n".join(sections))


def embedded(host, texts):
    """The seconds that the embedder takes for texts."""
    began = time.monotonic()
    for first in range(0, len(texts), BATCH):
        answer, _ = host.post("/v1/embeddings", {"model": "embedder", "input": texts[first:first + BATCH]})
        if "error" in answer:
            raise SystemExit(f"the embedder refused: {answer['error']['message']}")
    return time.monotonic() - began


def measure_large(tierbar, embedder, passages=LARGE):
    """The table for a large collection: the speed beside the embedder's own, the time of a query, and memory."""
    with tempfile.TemporaryDirectory(prefix="tierbar-eval-") as folder, Reader(tierbar, embedder) as host:
        write_large(folder, passages)
        # So that the embedder is loaded, and the host as large as it is with it.
        embedded(host, ["a first text"])
        before = host.memory()
        count, reading, most = host.read(folder, look=0.5)
        # The same texts as the indexer's, whose headings stand before them.
        texts = [texts_of(file) for file in sorted(Path(folder).glob("*.md"))]
        texts = [text for file in texts for text in file]
        sample = random.Random(5).sample(texts, min(ALONE, len(texts)))
        alone = len(sample) / embedded(host, sample)
        queries = [line["question"] for line in lines("questions.jsonl") if is_english(line)]
        whole, without = [], []
        for query in queries:
            vector = embedded(host, [query])
            found, seconds = host.post("/v1/documents/search", {"query": query, "limit": PASSAGES, "rerank": False})
            if len(found["passages"]) < PASSAGES:
                raise SystemExit(f"a query found {len(found['passages'])} passages")
            whole.append(seconds)
            without.append(max(0, seconds - vector))
        after = host.memory()
    speed = count / reading / alone
    query = slowest(without) * 1000
    rows = [
        ["passages", f"{count:,}", ""],
        ["read and indexed", f"{count / reading:.1f} a second", ""],
        [f"{embedder.stem} alone, in batches of {BATCH}", f"{alone:.1f} a second", ""],
        ["the one by the other", f"{speed:.2f}", f"at least {SPEED}: {held(speed >= SPEED)}"],
        ["query, p95, without the time of its vector", f"{query:.0f} ms", f"at most {QUERY_MS} ms: {held(query <= QUERY_MS)}"],
        ["query, p95, with it", f"{slowest(whole) * 1000:.0f} ms", ""],
        ["memory of the host before", f"{before:.0f} MiB", ""],
        ["at most while it reads", f"{most:.0f} MiB", ""],
        ["after the queries", f"{after:.0f} MiB", f"at most {MEMORY_MIB} MiB more: {held(max(most, after) - before <= MEMORY_MIB)}"],
    ]
    return table([f"{passages:,} passages", "measured", "limit"], rows)


def texts_of(file):
    """The texts of a document's passages, as the embedder reads them."""
    return [f"{file.stem}\n{section.strip()}" for section in re.split(r"^(?=## )", file.read_text(), flags=re.MULTILINE) if section.strip()]


def held(is_held):
    return "held" if is_held else "**not held**"

"""Documents: whether a search finds the passage that holds the answer, whether an answer cites it, how fast, and what ten thousand
passages cost."""

import json
import random
import re
import sqlite3
import struct
import subprocess
import tempfile
import time
from contextlib import closing
from operator import mul
from pathlib import Path
from statistics import mean, median

from host import Host, Subject, lines, share, table
from words import CORPUS, avoids, content, stems

EMBEDDER = Path.home() / ".cache/tierbar/models/all-MiniLM-L6-v2.F32.gguf"
# Questions in other languages mean nothing to an embedder that knows one; these are the signs in the names of those that know many.
MULTILINGUAL = ("multilingual", "bge-m3", "qwen3-embedding", "embeddinggemma", "arctic-embed-l-v2", "jina-embeddings-v3")
PASSAGES = 5
# As many as a model is given for an answer.
GIVEN = 6
# A passage holds a sentence that has this share of its content words there, and all of its figures.
HELD_WORDS = 0.5
READ_SECONDS = 3600
# Of the large collection: as many passages of about a hundred words, under a heading each.
LARGE, PASSAGES_A_FILE, WORDS_A_PASSAGE = 10_000, 100, 100
# Passages of it that the embedder reads once more by itself, in batches as the indexer's.
ALONE, BATCH = 512, 16
# The limits that these figures are held to.
SPEED, QUERY_MS, MEMORY_MIB = 0.9, 50, 100


class Reader(Host):
    """A host that searches documents, with an embedder and a reranker or without them, and answers from them if it has a subject."""

    def __init__(self, tierbar, embedder, subject=None, reranker=None):
        super().__init__(tierbar, subject or Subject("documents", file=embedder))
        self.embedder, self.reranker, self.answers = embedder, reranker, subject is not None

    def config(self):
        tiers = f"[tiers.primary]\n{self.subject.tier()}" if self.answers else ""
        for tier, model in (("embedder", self.embedder), ("reranker", self.reranker)):
            if model:
                tiers += f"[tiers.{tier}]\nmodel = {json.dumps(str(model))}\n"
        return tiers

    def search(self, query, limit=PASSAGES, reranks=False):
        """The passages that a search finds, and its seconds."""
        wanted = {"query": query, "limit": limit, "rerank": reranks}
        found, seconds = self.post("/v1/documents/search", wanted)
        if self.embedder and not found["embedder"] or found["reranked"] != reranks:
            raise SystemExit("a search went without the embedder or the reranker")
        return found["passages"], seconds

    def vector(self, text):
        answer, _ = self.post("/v1/embeddings", {"model": "embedder", "input": [text]})
        return answer["data"][0]["embedding"]

    def stored_vectors(self):
        """All passages with their vectors, as the host has stored them: the scale, and a byte for each number."""
        select = "SELECT text, vector FROM document_vectors JOIN document_passages ON document_passages.id = passage"
        with closing(sqlite3.connect(f"file:{Path(self.folder.name, 'tierbar.db')}?mode=ro", uri=True)) as database:
            rows = database.execute(select).fetchall()
        return [({"text": text}, struct.unpack(f"<f{len(packed) - 4}b", packed)) for text, packed in rows]

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


def ranked_by_meaning(host):
    """A search by meaning alone, which the API does not have: the same vectors, compared here."""
    stored = host.stored_vectors()

    def search(query):
        vector = host.vector(query)
        alike = [(scale * sum(map(mul, numbers, vector)), passage) for passage, (scale, *numbers) in stored]
        return [passage for _, passage in sorted(alike, key=lambda pair: -pair[0])[:PASSAGES]], None

    return search


def recall(places):
    """How many were found among the first passages, and the mean of 1 ÷ the place."""
    hits = [place for place in places if place]
    return [share(len(hits), len(places)), f"{sum(1 / place for place in hits) / len(places):.2f}" if places else "–"]


def found_by(search, questions):
    """Each question with the place of its answer, and the seconds of its search."""
    found = []
    for line in questions:
        passages, seconds = search(line["question"])
        found.append((line, found_at(passages, line["answer"]), seconds))
    return found


def rows_of(name, found):
    """A search's rows: of all questions in English of a set, and of those that avoid their answers' words."""
    rows = []
    for which in ("dev", "test"):
        part = [one for one in found if one[0]["set"] == which and is_english(one[0])]
        hard = [place for line, place, _ in part if avoids(line)]
        seconds = [took for _, _, took in part if took is not None]
        times = [f"{median(seconds) * 1000:.0f} ms", f"{slowest(seconds) * 1000:.0f} ms"] if seconds else ["–", "–"]
        called = which + (", held out" if which == "test" else "")
        rows.append([name, called, *recall([place for _, place, _ in part]), *recall(hard), *times])
    return rows


def measure(tierbar, embedder, reranker=None):
    """The table of each search, and that of the questions in other languages if the embedder knows these."""
    questions = [line for line in lines("questions.jsonl") if is_english(line) or is_multilingual(embedder)]
    with Reader(tierbar, None) as host:
        passages, reading, _ = host.read(CORPUS)
        rows = rows_of("words alone (BM25)", found_by(host.search, questions))
    speeds, others = [f"{passages / reading:.0f} a second by words alone"], []
    if embedder.exists():
        with Reader(tierbar, embedder, reranker=reranker) as host:
            passages, reading, _ = host.read(CORPUS)
            speeds.append(f"{passages / reading:.0f} with {embedder.stem}")
            searches = {f"meaning alone ({embedder.stem})": ranked_by_meaning(host), "both": host.search}
            if reranker:
                searches[f"both, reranked ({reranker.stem})"] = lambda query: host.search(query, reranks=True)
            for name, search in searches.items():
                found = found_by(search, questions)
                rows += rows_of(name, found)
                foreign = [place for line, place, _ in found if not is_english(line)]
                others += [[name, *recall(foreign)]] if foreign else []
    head = ["search", "questions", "recall@5", "MRR", "recall@5, avoiding the answer's words", "MRR, avoiding them", "median time",
            "95th percentile"]
    texts = [table(head, rows), f"The texts have {passages} passages, read at {' and '.join(speeds)}."]
    if others:
        texts.append(table(["questions in other languages", "recall@5", "MRR"], others))
    return "\n\n".join(texts)


def claims(answer):
    """The sentences of an answer that cite, without their citations, and the numbers of the passages."""
    # A number behind a full stop belongs to the sentence before it.
    text = re.sub(r"([.!?])((?:\s*\[\d+\])+)", r"\2\1", answer)
    for sentence in re.split(r"(?<=[.!?])\s+|\n+", text):
        numbers = {int(number) for number in re.findall(r"\[(\d+)\]", sentence)}
        if numbers:
            yield re.sub(r"\[\d+\]", " ", sentence), numbers


def supports(passage, sentence):
    """Whether a passage's own words hold a sentence."""
    words, held = content(sentence), stems(" ".join([passage["title"], *passage["headings"], passage["text"]]))
    figures = {word for word in words if any(letter.isdigit() for letter in word)}
    return bool(words) and figures <= held and len(words & held) >= HELD_WORDS * len(words)


def is_by_rule(answer):
    """Whether the answer is of sentences that a rule chose, in place of a model's words."""
    return (answer["notice"] or "").startswith("The model returned no words. ")


class Citations:
    """The counts of one set's answers."""

    def __init__(self):
        self.answers, self.by_rule, self.given, self.first, self.citing, self.right = 0, 0, 0, 0, 0, 0
        self.cited, self.holding = 0, 0
        # Of each sentence that cites a passage: whether that one holds it, and which share of the others given does.
        self.supported, self.by_others = [], []
        self.seconds = []

    def add(self, line, given, answer, seconds):
        place = found_at(given, line["answer"])
        self.given += place is not None
        self.first += place == 1
        self.seconds.append(seconds)
        if "error" in answer:
            # Small models often write nothing. Anything else would be a fault of the set-up.
            if answer["error"]["code"] != "tier_failed":
                raise SystemExit(answer["error"]["message"])
            return
        self.answers += 1
        if is_by_rule(answer):
            # Sentences of the passages, which cite these: they say nothing about the model.
            self.by_rule += 1
            return
        cited = {citation["number"]: citation["passage"] for citation in answer["citations"]}
        holding = sum(holds(passage, line["answer"]) for passage in cited.values())
        self.citing += bool(cited)
        self.right += bool(holding)
        self.cited += len(cited)
        self.holding += holding
        for sentence, numbers in claims(answer["answer"]):
            self.supported += [supports(cited[number], sentence) for number in numbers if number in cited]
            known = {cited[number]["id"] for number in numbers if number in cited}
            others = [supports(passage, sentence) for passage in given if passage["id"] not in known]
            self.by_others += [mean(others)] if others else []

    def row(self):
        number = len(self.seconds)
        return [
            share(self.answers - self.by_rule, number), str(self.by_rule), share(self.given, number), share(self.first, number),
            share(self.citing, number), share(self.right, number), share(self.holding, self.cited),
            share(sum(self.supported), len(self.supported)), f"{mean(self.by_others):.0%}" if self.by_others else "–",
            f"{median(self.seconds):.1f} s" if number else "–"]


def measure_citations(tierbar, embedder, subject, most=None, reranker=None):
    """How often an answer of a model cites a passage, one that holds the answer's words, and one that holds the sentence's own."""
    rows = []
    with Reader(tierbar, embedder if embedder.exists() else None, subject, reranker) as host:
        host.read(CORPUS)
        for which in ("dev", "test"):
            counts = Citations()
            questions = [line for line in lines("questions.jsonl") if line["set"] == which and is_english(line)]
            for line in questions[:most]:
                given, _ = host.search(line["question"], GIVEN, reranks=reranker is not None)
                question = {"question": line["question"], "model": "primary", "limit": GIVEN}
                counts.add(line, given, *host.post("/v1/documents/ask", question))
            rows.append([which + (", held out" if which == "test" else ""), *counts.row()])
    head = ["questions", "answered in words", "by rule", f"the answer is among the {GIVEN} given", "it is in the first", "cites a passage",
            "cites one with the answer", "citations with the answer", "cited sentences that their passage holds",
            "that the other passages hold", "median time"]
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

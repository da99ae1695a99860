#!/usr/bin/env python3
"""Compares the text that tierbar-extract reads of PDFs with poppler's and PDFium's.

    pip install pypdfium2; apt install poppler-utils
    tests/eval/pdfs.py [--before OLD_EXTRACT] [--worst N] [FOLDER...]

Without a folder it fetches the source packages below from PyPI into a temporary folder and takes their PDFs.

The reference is computed: the words on which poppler and PDFium agree, and poppler's alone. A word is a run of letters and digits;
scripts without spaces count by letter. Per file: the share of the reference's words that a reader finds, and the share of its pairs of
adjacent words that stand side by side in the reader's text. The table has the means over files, and how many files are below half.
"""

import argparse
import collections
import hashlib
import json
import os
import pathlib
import re
import resource
import subprocess
import sys
import tarfile
import tempfile
import unicodedata

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Packages whose tests have PDFs, with their archives' SHA-256.
PACKAGES = {
    "pdfminer.six==20191020": "5aa19ee9de443eb7abd3d6ee6e571b139cb321bf411ec8544f472866b1ef2835",
    "pypdf==7.1.1": "2eff4e2fc5fb22a6d6711e6f1166cdc9ab5765d90cd0d77dfea3f4aa91a27b1d",
}
FEWEST_WORDS = 20
WORD = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]|[^\W_\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+")
PDFIUM = """
import sys, pypdfium2
pdf = pypdfium2.PdfDocument(sys.argv[1])
pdf.init_forms()
for page in pdf:
    print(page.get_textpage().get_text_range())
"""


def words(text):
    text = unicodedata.normalize("NFKC", text).replace("\u0002", "").replace("\ufffe", "").replace("\u00ad", "-")
    text = re.sub(r"(?<=[^\W\d])[-\u2010]\s*\n\s*(?=[^\W\d])", "", text)
    return WORD.findall(text.lower())


def run(command, stdin=None):
    """The output and the user CPU seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    try:
        done = subprocess.run(command, stdin=stdin, capture_output=True, timeout=200)
        output = done.stdout.decode("utf-8", "replace")
    except subprocess.TimeoutExpired:
        output = ""
    return output, resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def read_poppler(path):
    return run(["pdftotext", "-q", str(path), "-"])


def read_pdfium(path):
    return run([sys.executable, "-c", PDFIUM, str(path)])


def read_ours(extract, path):
    with open(path, "rb") as file:
        output, seconds = run([extract, path.name], file)
    lines = output.strip().split("\n")
    if not lines[-1].startswith('{"end":'):
        return "", seconds
    return "\n".join(json.loads(line)["block"]["text"] for line in lines if line.startswith('{"block":')), seconds


def shares(found, reference):
    """Of the reference's words and pairs, those that are found."""
    both = lambda a, b: sum((collections.Counter(a) & collections.Counter(b)).values())
    pairs = lambda words: list(zip(words, words[1:]))
    return both(found, reference) / len(reference), both(pairs(found), pairs(reference)) / max(1, len(reference) - 1)


def agreed(one, other):
    """The words of the first that the other has as well, in the first's order."""
    left, kept = collections.Counter(other), []
    for word in one:
        if left[word] > 0:
            left[word] -= 1
            kept.append(word)
    return kept


def fetch(folder, packages):
    """Downloads and unpacks these source packages. pip refuses an archive with another hash."""
    wanted = folder / "requirements.txt"
    wanted.write_text("".join(f"{package} --hash=sha256:{archive}\n" for package, archive in packages.items()))
    subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "-d", folder, "-r", wanted], check=True)
    for archive in folder.glob("*.tar.gz"):
        with tarfile.open(archive) as packed:
            packed.extractall(folder / archive.name.removesuffix(".tar.gz"), filter="data")


def digest(paths):
    """What tells one corpus from another: a hash of the files' hashes, wherever they lie."""
    hashes = sorted(hashlib.sha256(path.read_bytes()).hexdigest() for path in paths)
    return hashlib.sha256("\n".join(hashes).encode()).hexdigest()[:16]


def measure(paths, readers, cache):
    files = []
    for path in paths:
        key = hashlib.sha256(path.read_bytes()).hexdigest()
        texts = {}
        for name, (reader, keep) in readers.items():
            kept = cache / f"{key}.{name}.json" if cache and keep else None
            if kept and kept.exists():
                texts[name] = json.loads(kept.read_text())
                continue
            text, seconds = reader(path)
            texts[name] = words(text), seconds
            if kept:
                kept.write_text(json.dumps(texts[name]))
        files.append((path, texts))
    return files


def table(files, names, title, reference, worst):
    chosen = [(path, texts, reference(texts)) for path, texts in files]
    chosen = [one for one in chosen if len(one[2]) >= FEWEST_WORDS]
    print(f"\n{title}: {len(chosen)} files of {len(files)}\n\n| reader | words found | pairs in order | below half | CPU s |\n|---|---|---|---|---|")
    for name in names:
        found = [shares(texts[name][0], of) for _, texts, of in chosen]
        mean = lambda at: sum(one[at] for one in found) / max(1, len(found))
        seconds = sum(texts[name][1] for _, texts in files)
        print(f"| {name} | {mean(0):.3f} | {mean(1):.3f} | {sum(one[0] < 0.5 for one in found)} | {seconds:.1f} |")
    scored = sorted((shares(texts["ours"][0], of), path, len(of)) for path, texts, of in chosen)
    for (share, pairs), path, count in scored[:worst]:
        print(f"  {share:.2f} {pairs:.2f} {count:6} {path}")
    scored = sorted((shares(texts["ours"][0], of)[1] - shares(texts["pdfium"][0], of)[1], path) for path, texts, of in chosen)
    for less, path in scored[:worst]:
        print(f"  pairs {less:+.2f} {path}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folders", nargs="*", type=pathlib.Path)
    parser.add_argument("--extract", default=ROOT / "target/release/tierbar-extract")
    parser.add_argument("--before", help="an older tierbar-extract, to compare with")
    parser.add_argument("--worst", type=int, default=0, help="how many files to name where ours reads least")
    parser.add_argument("--cache", type=pathlib.Path, help="a folder for what the other readers read")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folders = options.folders
        if not folders:
            fetch(pathlib.Path(temporary), PACKAGES)
            folders = [pathlib.Path(temporary)]
        paths = sorted(path for folder in folders for path in folder.rglob("*.pdf") if path.is_file())
        readers = {"ours": (lambda path: read_ours(options.extract, path), False)}
        if options.before:
            readers["before"] = (lambda path: read_ours(options.before, path), True)
        readers |= {"pdfium": (read_pdfium, True), "poppler": (read_poppler, True)}
        if options.cache:
            options.cache.mkdir(parents=True, exist_ok=True)
        print(f"{len(paths)} files, {digest(paths)}")
        files = measure(paths, readers, options.cache)
        table(files, readers, "Against poppler", lambda texts: texts["poppler"][0], options.worst)
        table(files, readers, "Against what poppler and PDFium agree on", lambda texts: agreed(texts["poppler"][0], texts["pdfium"][0]), 0)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Compares the text that tierbar-extract reads of Word's documents, of presentations and of web pages with that of other readers.

    pip install python-docx mammoth python-pptx html5lib; apt install w3m
    tests/eval/office.py [--worst N] [FOLDER...]

Without a folder it fetches the source packages below from PyPI into a temporary folder and takes their documents.

The reference is computed. Of a document, it is what python-docx and what mammoth reads; of a presentation, what python-pptx reads; of a
page, what w3m shows, and what html5lib's tree has to be shown, without navigation and controls. Words and shares are those of pdfs.py.
Files that a reader cannot read or that have fewer than 5 words by it are left out of its row.
"""

import argparse
import collections
import hashlib
import pathlib
import tempfile
import warnings

import docx
import html5lib
import mammoth
import pptx

from pdfs import ROOT, digest, fetch, read_ours, run, shares, words

# Packages whose tests have documents, with their archives' SHA-256.
PACKAGES = {
    "docx-revisions==0.1.5": "b567eb521d8bc51eb87fe5b94227cf5a8f28fdbf97b18d3e58d393652fdac793",
    "html-text==0.7.1": "87fd194310a9f54be32c7b18a70180dfa72a6b4d01cca35ac813c4d2b2b2ed8b",
    "html2text==2025.4.15": "948a645f8f0bc3abe7fd587019a2197a12436cd73d0d4908af95bfc8da337588",
    "inscriptis==2.7.6": "b8fe23c5ae4db33c9d1c5e1b7d000dbfa1decbea7b605ac87e0f5d8f8abc3ce6",
    "pydocx==0.9.10": "07bd9bce7834f8a5e0b00130f29b54bbdda22d625711a591421913bdfa8470e3",
    "python-docx==1.2.0": "7bc9d7b7d8a69c9c02ca09216118c86552704edc23bac179283f2e38f86220ce",
    "python-pptx==1.0.2": "479a8af0eaf0f0d76b6f00b0887732874ad2e3188230315290cd1f9dd9cc7095",
    "trafilatura==2.3.1": "2e5557aeab32d33b9da7ff0debbb677a676c5b648a927e50d91b8277011e1105",
}
FORMATS = {".docx": "DOCX", ".pptx": "PPTX", ".html": "HTML", ".htm": "HTML", ".xhtml": "HTML"}
FEWEST_WORDS = 5
# Elements within a line, so that a word can go on behind them.
INLINE = set("a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark q s samp small span strike strong sub sup time tt "
             "u var wbr".split())
UNSEEN = set("audio canvas datalist head iframe math noembed noframes noscript object script style svg template textarea title video".split())
CONTROLS = {"button", "nav", "select"}


def lines_of_table(table):
    """The text of cells, each once, though python-docx has a merged one several times."""
    seen = set()
    for row in table.rows:
        for cell in row.cells:
            if cell._tc not in seen:
                seen.add(cell._tc)
                yield from lines_of(cell)


def lines_of(container):
    for one in container.iter_inner_content():
        if isinstance(one, docx.table.Table):
            yield from lines_of_table(one)
        else:
            yield one.text


def read_python_docx(path):
    document = docx.Document(str(path))
    lines = list(lines_of(document))
    for section in document.sections:
        for part in (section.header, section.first_page_header, section.even_page_header,
                     section.footer, section.first_page_footer, section.even_page_footer):
            if not part.is_linked_to_previous:
                lines += lines_of(part)
    for comment in document.comments:
        lines += lines_of(comment)
    return "\n".join(lines)


def read_mammoth(path):
    """The page that mammoth makes of it, without the marks that it adds to notes and comments."""
    with open(path, "rb") as file:
        page = mammoth.convert_to_html(file, style_map="comment-reference => sup", convert_image=mammoth.images.img_element(lambda _: {})).value
    return text_of(page, lambda element: element.tag == "a" and any(mark in element.get("href", "") for mark in ("#footnote", "#endnote", "#comment"))
                   or element.tag == "dt" and element.get("id", "").startswith("comment"))


def lines_of_shapes(shapes):
    for shape in shapes:
        if hasattr(shape, "shapes"):
            yield from lines_of_shapes(shape.shapes)
        elif shape.is_placeholder and shape.placeholder_format.type == pptx.enum.shapes.PP_PLACEHOLDER.SLIDE_NUMBER:
            continue
        elif shape.has_text_frame:
            yield shape.text_frame.text
        elif getattr(shape, "has_table", False) and shape.has_table:
            yield from (cell.text for row in shape.table.rows for cell in row.cells if not cell.is_spanned)
        elif getattr(shape, "has_chart", False) and shape.has_chart:
            if shape.chart.has_title and shape.chart.chart_title.has_text_frame:
                yield shape.chart.chart_title.text_frame.text
            for plot in shape.chart.plots:
                yield from (label for label in plot.categories if isinstance(label, str))
                yield from (series.name for series in plot.series)


def read_python_pptx(path):
    lines = []
    for slide in pptx.Presentation(str(path)).slides:
        lines += lines_of_shapes(slide.shapes)
        if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
            lines.append(slide.notes_slide.notes_text_frame.text)
    return "\n".join(lines)


def text_of(page, is_left_out):
    """The text of html5lib's tree, with line breaks around all but inline elements."""
    pieces, open_elements = [], [html5lib.parse(page, namespaceHTMLElements=False)]
    while open_elements:
        one = open_elements.pop()
        if isinstance(one, str):
            pieces.append(one)
        elif not isinstance(one.tag, str):
            pieces.append("")
        elif not is_left_out(one):
            around = "" if one.tag in INLINE else "\n"
            open_elements.append(around)
            for child in reversed(one):
                open_elements += [child.tail or "", child]
            open_elements += [one.text or "", around]
    return "".join(pieces)


def is_hidden(element):
    style = element.get("style", "").replace(" ", "").lower()
    return element.tag.rpartition("}")[2] in UNSEEN or "hidden" in element.attrib or "display:none" in style


def read_html5lib(path):
    page = path.read_bytes()
    try:
        page = page.decode()
    except UnicodeDecodeError:
        # html5lib finds what it declares.
        pass
    return text_of(page, lambda element: is_hidden(element) or element.tag in CONTROLS)


def read_w3m(path):
    return run(["w3m", "-dump", "-cols", "10000", "-T", "text/html", "-O", "UTF-8", str(path)])[0]


READERS = {
    "DOCX": {"python-docx": read_python_docx, "mammoth": read_mammoth},
    "PPTX": {"python-pptx": read_python_pptx},
    "HTML": {"html5lib": read_html5lib, "w3m": read_w3m},
}


def measure(extract, paths, readers):
    """Of each reader: its name, and the shares, the path and the number of words of each file; then how many files it cannot read."""
    scored, unread = {name: [] for name in readers}, collections.Counter()
    for path in paths:
        references = {}
        for name, reader in readers.items():
            try:
                references[name] = words(reader(path).replace("\u00ad", "").replace("\v", "\n"))
            except Exception:
                unread[name] += 1
        references = {name: reference for name, reference in references.items() if len(reference) >= FEWEST_WORDS}
        found = words(read_ours(extract, path)[0]) if references else []
        for name, reference in references.items():
            scored[name].append((*shares(found, reference), path, len(reference)))
    return scored, unread


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folders", nargs="*", type=pathlib.Path)
    parser.add_argument("--extract", default=ROOT / "target/release/tierbar-extract")
    parser.add_argument("--worst", type=int, default=0, help="how many files to name of each row where ours reads least")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as temporary:
        folders = options.folders or [pathlib.Path(temporary)]
        if not options.folders:
            fetch(folders[0], PACKAGES)
        found = sorted(path for folder in folders for path in folder.rglob("*") if path.is_file() and path.suffix.lower() in FORMATS)
        files = {hashlib.sha256(path.read_bytes()).digest(): path for path in found}
        print(f"{len(files)} files, {digest(files.values())}\n")
        print("| format | reference | files | it cannot read | words found | pairs in order | below half |\n|---|---|---|---|---|---|---|")
        for kind, readers in READERS.items():
            paths = [path for path in files.values() if FORMATS[path.suffix.lower()] == kind]
            scored, unread = measure(options.extract, paths, readers)
            for name, rows in scored.items():
                mean = lambda at: sum(row[at] for row in rows) / max(1, len(rows))
                print(f"| {kind} | {name} | {len(rows)} | {unread[name]} | {mean(0):.3f} | {mean(1):.3f} | {sum(row[0] < 0.5 for row in rows)} |")
                for share, pairs, path, count in sorted(rows, key=lambda row: row[0])[:options.worst]:
                    print(f"  {share:.2f} {pairs:.2f} {count:6} {path}")


if __name__ == "__main__":
    main()

"""Broken documents for `tierbar-extract`: mail, PDF, Word, PowerPoint, HTML, Markdown, text, code. As a program, it writes sound ones for
the fuzzers into a folder, by kind.

Each is read by a process of its own. What must not be: a panic, an end by a signal, output that is not whole, or more seconds than a limit."""

import io
import json
import pathlib
import random
import subprocess
import sys
import zipfile
import zlib
from concurrent.futures import ThreadPoolExecutor

import mutation
from serving import ROOT, program

AT_ONCE = 4
# A sound document of these sizes takes milliseconds; what takes so long on a busy machine hangs.
SECONDS = 60
FIXTURES = ROOT / "src-tauri/crates/documents/tests/fixtures"

MAIL = """From: =?utf-8?Q?J=C3=B6rg?= <j@example.org>
To: a@example.org
Subject: =?iso-2022-jp?B?GyRCPVA7UxsoQg==?= Budget
Date: Sun, 29 Nov 2026 10:00:00 +0100
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="b"

--b
Content-Type: multipart/alternative; boundary="c"

--c
Content-Type: text/plain; charset=iso-8859-1; format=flowed
Content-Transfer-Encoding: quoted-printable

The budget for M=FCnchen was agreed. =
It is 12,000.
--c
Content-Type: text/html; charset=utf-8

<p>The <b>budget</b> was agreed.</p>
--c--
--b
Content-Type: message/rfc822

From: b@example.org
Subject: Before

An earlier mail.
--b
Content-Type: text/csv; name="a.csv"
Content-Disposition: attachment; filename*=utf-8''%C3%BC.csv
Content-Transfer-Encoding: base64

bmFtZSxhZ2UKQW5uYSwzMA==
--b--
""".encode()
HTML = """<!doctype html><html><head><meta charset="utf-8"><title>Budget &amp; plan</title><style>p{}</style></head><body>
<h1>Budget</h1><p>Agreed on <b>Monday</b>&nbsp;&#x2014; by all.</p><ul><li>One<li>Two<ol><li>Deep</ol></ul>
<table><tr><th>Name<th>Sum<tr><td rowspan=2>Anna<td>30<tr><td>40</table><pre>let x = 1;</pre><script>no()</script></body></html>""".encode()
MARKDOWN = "---\ntitle: Plan\n---\n# Plan\n\nFirst *part*.\n\n- one\n  - two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```rust\nfn main() {}\n```\n> quoted\n".encode()
WORDS = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
SLIDES = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"'
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def relationships(*pairs):
    inner = "".join(f'<Relationship Id="r{number}" Type="{OFFICE}/{kind}" Target="{target}"/>' for number, (kind, target) in enumerate(pairs))
    return f'<?xml version="1.0"?><Relationships xmlns="{PACKAGE}/relationships">{inner}</Relationships>'


def archive(members):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as into:
        for name, text in members.items():
            into.writestr(zipfile.ZipInfo(name), text)
    return made.getvalue()


def docx():
    run = "<w:r><w:t>The budget was agreed.</w:t></w:r>"
    table = f"<w:tbl><w:tr><w:tc><w:p>{run}</w:p></w:tc><w:tc><w:p>{run}</w:p></w:tc></w:tr></w:tbl>"
    body = f'<w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr>{run}</w:p><w:p>{run}<w:r><w:footnoteReference w:id="1"/></w:r></w:p>{table}'
    return archive({
        "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types"><Default Extension="xml" ContentType="application/xml"/></Types>',
        "_rels/.rels": relationships(("officeDocument", "word/document.xml")),
        "word/document.xml": f'<?xml version="1.0" encoding="UTF-8"?><w:document {WORDS}><w:body>{body}</w:body></w:document>',
        "word/footnotes.xml": f'<w:footnotes {WORDS}><w:footnote w:id="1"><w:p>{run}</w:p></w:footnote></w:footnotes>',
        "word/_rels/document.xml.rels": relationships(("footnotes", "footnotes.xml")),
        "docProps/core.xml": '<cp:coreProperties xmlns:cp="c" xmlns:dc="d"><dc:title>Plan</dc:title></cp:coreProperties>',
    })  # fmt: skip


def pptx():
    text = "<a:p><a:r><a:t>The budget was agreed.</a:t></a:r></a:p>"
    slide = f'<p:sld {SLIDES}><p:cSld><p:spTree><p:sp><p:nvSpPr><p:nvPr><p:ph type="title"/></p:nvPr></p:nvSpPr><p:txBody>{text}</p:txBody></p:sp></p:spTree></p:cSld></p:sld>'
    return archive({
        "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types"/>',
        "_rels/.rels": relationships(("officeDocument", "ppt/presentation.xml")),
        "ppt/presentation.xml": f'<p:presentation {SLIDES} xmlns:r="{OFFICE}"><p:sldIdLst><p:sldId id="256" r:id="r0"/></p:sldIdLst></p:presentation>',
        "ppt/_rels/presentation.xml.rels": relationships(("slide", "slides/slide1.xml")),
        "ppt/slides/slide1.xml": slide,
        "ppt/slides/_rels/slide1.xml.rels": relationships(("notesSlide", "../notesSlides/notesSlide1.xml")),
        "ppt/notesSlides/notesSlide1.xml": slide,
    })  # fmt: skip


def pdf():
    """Two pages: one compressed, one as it is, with a font's own encoding and a map to Unicode."""
    text = b"BT /F1 12 Tf 72 700 Td (The budget was agreed.) Tj 0 -20 Td [(Mon) -250 <64617921>] TJ ET"
    packed = zlib.compress(text)
    unicode = b"/CIDInit /ProcSet findresource begin begincmap 1 begincodespacerange <00> <ff> endcodespacerange 1 beginbfrange <20> <7e> <0020> endbfrange endcmap end"
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R /AcroForm << /Fields [] >> >>",
        b"<< /Type /Pages /Kids [3 0 R 4 0 R] /Count 2 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 5 0 R /Resources << /Font << /F1 7 0 R >> >> >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Rotate 90 /Contents 6 0 R /Resources << /Font << /F1 7 0 R >> >> >>",
        b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream" % (len(packed), packed),
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(text), text),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding << /Type /Encoding /BaseEncoding /WinAnsiEncoding /Differences [33 /exclam] >> /FirstChar 32 /LastChar 34 /Widths [278 278 355] /ToUnicode 8 0 R >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(unicode), unicode),
    ]
    made, places = b"%PDF-1.7\n", []
    for number, content in enumerate(objects, 1):
        places.append(len(made))
        made += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    count = len(objects) + 1
    return made + b"xref\n0 %d\n0000000000 65535 f \n%strailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (count, table, count, len(made))


def seeds():
    """(name, sound document, how it is broken)"""
    yield "a.eml", MAIL, mutation.of_mail
    yield "a.mbox", b"From a@example.org Sun Nov 29 10:00:00 2026\n" + MAIL + b"\nFrom b@example.org Sun Nov 29 10:00:00 2026\n" + MAIL, mutation.of_mail
    yield "a.pdf", pdf(), mutation.of_pdf
    for path in sorted(FIXTURES.glob("*.pdf")):
        yield path.name, path.read_bytes(), mutation.of_pdf
    yield "a.docx", docx(), mutation.of_zip
    yield "b.docx", (FIXTURES / "endnotes.docx").read_bytes(), mutation.of_zip
    yield "a.pptx", pptx(), mutation.of_zip
    yield "a.html", HTML, mutation.of_markup
    yield "a.md", MARKDOWN, lambda random, data: mutation.of_tokens(random, data, rb"[^\n]*\n")
    yield "a.txt", "Grüße aus München. 会议纪要。\n".encode() * 20, mutation.of_bytes
    yield "b.txt", "Бюджет утверждён на совещании.\n".encode("windows-1251") * 20, mutation.of_bytes
    yield "a.rs", b"/// Adds.\nfn add(a: u32) -> u32 {\n    a + 1\n}\n" * 20, mutation.of_bytes


def fault_of(name, data):
    """What is wrong with how this document is read, or None."""
    command = [program().with_name("tierbar-extract"), name]
    try:
        done = subprocess.run(command, input=data, capture_output=True, timeout=SECONDS, env={})
    except subprocess.TimeoutExpired:
        return "hangs"
    if done.returncode or done.stderr:
        return f"ends with {done.returncode}: {done.stderr[-500:]!r}"
    try:
        lines = [json.loads(line) for line in done.stdout.splitlines()]
    except ValueError as error:
        return f"a line is no JSON: {error}"
    if not lines or not {"end", "refused"} & lines[-1].keys():
        return f"output without its end: {done.stdout[-200:]!r}"
    return None


def run(seed, count, keep=None):
    """Has `count` broken documents read: what was wrong. Their files are kept in the folder `keep`."""
    sound = list(seeds())
    faults = [f"{name} as it is: {fault}" for name, data, _ in sound if (fault := fault_of(name, data))]

    def one(number):
        name, data, broken = sound[number % len(sound)]
        data = broken(random.Random(f"{seed} {number}"), data)
        fault = fault_of(name, data)
        if fault and keep:
            pathlib.Path(keep).mkdir(parents=True, exist_ok=True)
            (pathlib.Path(keep) / f"{number}-{name}").write_bytes(data)
        return fault and f"{seed} {number}, {name}: {fault}"

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return faults + [fault for fault in pool.map(one, range(count)) if fault]


def main():
    for name, data, _ in seeds():
        folder = pathlib.Path(sys.argv[1]) / f"document{pathlib.Path(name).suffix.replace('.mbox', '.eml')}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Compares the text that tierbar-extract reads of mails with that of Python's own parser.

    tests/eval/mails.py [--worst N] FOLDER...

The reference is computed: who, whom, when and what about, the texts (of alternatives the plain one, unless the page is twice as long), the
names of attachments, and all of it again for mails within. Words and shares are those of pdfs.py. Files that Python cannot parse, that are no mails or
have fewer than 5 words are left out.
"""

import argparse
import email
import email.policy
import hashlib
import html.parser
from email.header import decode_header, make_header
import mailbox
import pathlib
import re
import warnings

from pdfs import ROOT, digest, read_ours, shares, words

FIELDS = ["subject", "from", "to", "cc", "date"]
FEWEST_WORDS = 5
HIDDEN = ("script", "style", "title")
ENDINGS = {"", ".eml", ".mbox", ".msg", ".txt", ".email", ".mime"}


class Page(html.parser.HTMLParser):
    """What a page shows."""

    def __init__(self, text):
        super().__init__()
        self.text, self.hidden = [], 0
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, _):
        self.hidden += tag in HIDDEN
        self.text.append(" " if tag in ("a", "b", "i", "u", "em", "strong", "span", "font") else "\n")

    def handle_endtag(self, tag):
        self.hidden -= tag in HIDDEN and self.hidden > 0

    def handle_data(self, data):
        if not self.hidden:
            self.text.append(data)


def decode(content, charset):
    """Text in its charset, or in UTF-8; nothing if it is data."""
    for name, errors in ((charset, "strict"), ("utf-8", "strict"), (charset, "replace"), ("cp1252", "replace")):
        try:
            text = content.decode(name, errors)
        except (LookupError, UnicodeDecodeError):
            continue
        odd = sum(letter == "\ufffd" or letter < "\t" for letter in text)
        if odd * 10 <= len(text):
            return text
    return ""


def text_of(part):
    charset = part.get_content_charset() or "utf-8"
    text = decode(part.get_payload(decode=True) or b"", charset)
    return "".join(Page(text).text) if part.get_content_type() == "text/html" else text


def field_of(value):
    """A field as it stands in the header, since Python writes dates and addresses anew."""
    text = decode(value.encode("ascii", "surrogateescape"), "utf-8")
    return str(make_header(decode_header(text))) if "=?" in text else text


class NoMail(Exception):
    """A file without the fields of a mail."""


def read_message(message):
    texts = [field_of(value) for field in FIELDS for name, value in message.raw_items() if name.lower() == field]
    return "\n".join(texts) + "\n" + read_part(message)


def read_part(part):
    kind = part.get_content_type()
    if kind == "multipart/alternative" and part.is_multipart():
        parts = part.get_payload()
        plain = "\n".join(read_part(one) for one in parts if one.get_content_type() == "text/plain")
        page = "\n".join(read_part(one) for one in parts if one.get_content_type() != "text/plain")
        return plain if len(plain.strip()) * 2 >= len(page.strip()) else page
    if kind == "message/rfc822" and part.is_multipart():
        return "\n".join(map(read_message, part.get_payload()))
    if part.is_multipart():
        return "\n".join(map(read_part, part.get_payload()))
    name = part.get_filename() or ""
    return f"{name}\n{text_of(part) if part.get_content_maintype() == 'text' else ''}"


def read_python(path):
    content = path.read_bytes()
    policy = email.policy.default
    if not content.startswith(b"From "):
        message = email.message_from_bytes(content, policy=policy)
        if sum(field in message for field in FIELDS) < 2:
            raise NoMail
        return read_message(message)
    box = mailbox.mbox(path, factory=lambda file: email.message_from_binary_file(file, policy=policy), create=False)
    return "\n".join(map(read_message, box))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    parser.add_argument("--extract", default=ROOT / "target/release/tierbar-extract")
    parser.add_argument("--worst", type=int, default=0, help="how many files to name where ours reads least")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    paths = sorted(path for folder in options.folders for path in folder.rglob("*") if path.is_file() and path.suffix.lower() in ENDINGS)
    seen, scored, unread = set(), [], 0
    for path in paths:
        key = hashlib.sha256(path.read_bytes()).digest()
        if key in seen:
            continue
        seen.add(key)
        try:
            reference = words(read_python(path))
        except NoMail:
            continue
        except Exception as error:
            unread += 1
            print(f"  {path}: Python: {type(error).__name__}")
            continue
        if len(reference) >= FEWEST_WORDS:
            text, _ = read_ours(options.extract, path)
            scored.append((*shares(words(text), reference), path, len(reference)))
    scored.sort(key=lambda one: one[0])
    mean = lambda at: sum(one[at] for one in scored) / len(scored)
    print(f"{len(paths)} files, {digest(paths)}")
    print(f"{len(scored)} mails, {unread} that Python cannot read: words found {mean(0):.3f}, pairs in order {mean(1):.3f}, "
          f"below half {sum(one[0] < 0.5 for one in scored)}")
    for share, pairs, path, count in scored[:options.worst]:
        print(f"  {share:.2f} {pairs:.2f} {count:6} {path}")


if __name__ == "__main__":
    main()

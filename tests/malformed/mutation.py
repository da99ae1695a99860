"""Breaks things by their grammar: bytes, JSON, markup, archives, PDFs, mail. Each takes a `random.Random`, so that a seed gives it again."""

import io
import json
import re
import warnings
import zipfile

from corpus import WRONG

# Two members of one name are meant.
warnings.filterwarnings("ignore", "Duplicate name")

NUMBERS = [b"0", b"-1", b"1", b"65536", b"2147483648", b"4294967295", b"9223372036854775807", b"1e99", b"0.0000001", b"99999999999999999999"]
STRANGE = [b"\x00", b"\xff", b"\xfe\xff", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xf0\x9f", b"\r", b"\n\n", b"%", b"\\", b'"', b"<", b">", b"&", b"\x1b[2J"]

# What is no letter, within a text of JSON.
NO_LETTERS = [rb"\ud83d", rb"\ude00", b"\xff", b"\xc3", b"\xf0\x9f"]


def of_bytes(random, data):
    data = bytearray(data)
    for _ in range(random.choice([1, 1, 2, 8])):
        at = random.randrange(len(data) + 1)
        length = random.choice([1, 4, 64, 1024])
        harm = random.randrange(6)
        if harm == 0:
            data[at : at + 1] = bytes([random.randrange(256)])
        elif harm == 1:
            del data[at : at + length]
        elif harm == 2:
            data[at:at] = random.choice(STRANGE)
        elif harm == 3:
            data[at:at] = data[at : at + length] * random.choice([1, 2, 50])
        elif harm == 4:
            other = random.randrange(len(data) + 1)
            data[at : at + length] = data[other : other + length]
        elif random.random() < 0.3:
            del data[at:]
    return bytes(data)


def of_tokens(random, data, pattern, replaced=None):
    """Drops, repeats, swaps and replaces the parts that a pattern finds."""
    places = [match.span() for match in re.finditer(pattern, data, re.DOTALL)]
    if not places:
        return of_bytes(random, data)
    for _ in range(random.choice([1, 1, 2, 6])):
        start, end = random.choice(places)
        token = data[start:end]
        harm = random.randrange(5)
        if harm == 0:
            new = b""
        elif harm == 1:
            new = token * random.choice([2, 2, 300])
        elif harm == 2:
            other = random.choice(places)
            new = data[other[0] : other[1]]
        elif harm == 3 and replaced:
            new = replaced(random, token)
        else:
            new = of_bytes(random, token)
        data = data[:start] + new + data[end:]
        places = [match.span() for match in re.finditer(pattern, data, re.DOTALL)]
        if not places:
            break
    return data


def of_json(random, value):
    """A copy with values replaced, left out or repeated at any depth, as text that may not be JSON any more."""
    value = json.loads(json.dumps(value))
    places = []

    def walk(within):
        for key in range(len(within)) if isinstance(within, list) else list(within):
            places.append((within, key))
            if isinstance(within[key], (dict, list)):
                walk(within[key])

    walk(value)
    for _ in range(random.choice([1, 1, 2, 4])):
        within, key = random.choice(places)
        harm = random.randrange(5)
        try:
            if harm == 0:
                del within[key]
            elif harm == 1:
                other, name = random.choice(places)
                within[key] = json.loads(json.dumps(other[name]))
            elif harm == 2 and isinstance(within, list):
                within += within[key : key + 1] * random.choice([1, 100])
            else:
                within[key] = random.choice(WRONG)
        except (KeyError, IndexError, RecursionError):
            pass  # what was there has gone with what held it
    text = json.dumps(value, ensure_ascii=random.random() < 0.5).encode("utf-8", "surrogatepass")
    harm = random.random()
    if harm < 0.2:
        return of_bytes(random, text)
    if harm < 0.25:
        return b"\xef\xbb\xbf" + text
    if harm < 0.3:
        return text.decode("utf-8", "replace").encode("utf-16")
    return text


def tag(random, token):
    name = random.choice([b"w:p", b"w:tbl", b"a:t", b"table", b"script", b"svg", b"x" * 300, b"a:\xff"])
    return random.choice([b"<%s>" % name, b"</%s>" % name, b"<%s " % name, b"<!--", b"<![CDATA[", b"<?xml?>", b"&#x0;&#xD800;&#99999999;", b"&a;&nbsp;",
                          b"<%s>" % name * 5000, b'<!DOCTYPE a [<!ENTITY a "&a;&a;">]>', token])  # fmt: skip


def of_markup(random, text):
    return of_tokens(random, text, rb"<[^>]*>|[^<]+", tag)


def of_zip(random, data, inner=of_markup):
    """An archive with a broken member, made anew, or broken itself."""
    if random.random() < 0.25:
        return of_bytes(random, data)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist()]
    at = random.randrange(len(members))
    name, content = members[at]
    harm = random.randrange(8)
    if harm == 0:
        del members[at]
    elif harm == 1:
        members[at] = (random.choice(["../x", "/etc/x", name + "\x00", name.upper(), "x" * 3000, name + "/"]), content)
    elif harm == 2:
        members.append((name, random.choice(members)[1]))
    elif harm == 3:
        members[at] = (name, b" " * (8 << 20))
    else:
        members[at] = (name, inner(random, content))
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", random.choice([zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED, zipfile.ZIP_BZIP2])) as archive:
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name), content, compress_type=archive.compression)
    return made.getvalue()


def of_pdf(random, data):
    def replaced(random, token):
        if token[:1].isdigit() or token[:1] == b"-":
            return random.choice(NUMBERS)
        return random.choice([b"/Type", b"/Kids", b"/Length", b"/FlateDecode", b"/Prev", b"null", b"[" * 400, b"<<" * 400, b"(" * 400, b"1 0 R", b"endobj", b"stream\n"])

    return of_tokens(random, data, rb"/[A-Za-z0-9]+|-?\d+(?: \d+ R)?|<<|>>|\[|\]|endobj|endstream|stream|xref|trailer", replaced)


def of_mail(random, data):
    def replaced(random, token):
        return random.choice([
            b"Content-Type: multipart/mixed; boundary=\n", b'Content-Type: multipart/mixed; boundary="b"\n', b"Content-Type: message/rfc822\n",
            b"Content-Type: text/plain; charset=\xff\n", b"Content-Type: text/plain; charset=utf-7\n", b"Content-Transfer-Encoding: base64\n",
            b"Content-Transfer-Encoding: quoted-printable\n", b"=\n", b"=ZZ=\n", b"=?utf-8?Q?=FF?= =?x?B?!!?=\n", b"From \n", b"--b\n" * 300, b"--b--\n", b":\n", b" folded\n", token[:-1],
        ])  # fmt: skip

    return of_tokens(random, data, rb"[^\n]*\n", replaced)

"""Writes a GGUF file anew with another chat template, for a model that knows no tools to take them."""

import shutil
import struct
from pathlib import Path

KEY = b"tokenizer.chat_template"
TEXT, LIST = 8, 9
# Bytes of each kind of value that has a fixed size, by its number in the format.
SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
ALIGNMENT = 32


class Reader:
    def __init__(self, file):
        self.file = file

    def take(self, form):
        return struct.unpack(f"<{form}", self.file.read(struct.calcsize(f"<{form}")))

    def text(self):
        return self.file.read(self.take("Q")[0])

    def skip(self, kind):
        if kind == TEXT:
            self.text()
        elif kind == LIST:
            inner, count = self.take("IQ")
            if inner in SIZES:
                self.file.seek(SIZES[inner] * count, 1)
            else:
                for _ in range(count):
                    self.skip(inner)
        else:
            self.file.seek(SIZES[kind], 1)

    def past_tensors(self, count):
        for _ in range(count):
            self.text()
            (dimensions,) = self.take("I")
            self.take(f"{dimensions}QIQ")


def write(source: Path, target: Path, template: str):
    """Copies `source` to `target` with this template. The file must have one, and the usual alignment."""
    with source.open("rb") as old, target.open("wb") as new:
        reader = Reader(old)
        magic, _version, tensors, pairs = reader.take("4sIQQ")
        assert magic == b"GGUF", source
        replaced, copied = None, 0
        for _ in range(pairs):
            key = reader.text()
            (kind,) = reader.take("I")
            start = old.tell()
            reader.skip(kind)
            if key == KEY:
                replaced = start, old.tell()
        assert replaced, f"{source} has no chat template"
        reader.past_tensors(tensors)
        head_end = old.tell()
        text = template.encode()
        for begin, end in ((copied, replaced[0]), (replaced[1], head_end)):
            old.seek(begin)
            new.write(old.read(end - begin))
            if end == replaced[0]:
                new.write(struct.pack("<Q", len(text)) + text)
        new.write(bytes(-new.tell() % ALIGNMENT))
        old.seek(-(-head_end // ALIGNMENT) * ALIGNMENT)
        shutil.copyfileobj(old, new, 1 << 20)

"""Rewrites one text in the header of a GGUF file."""

import shutil
import struct

ALIGNMENT = 32
# Bytes of each type of value. 8 is a text, 9 a list.
SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
TEXT, LIST = 8, 9


class Header:
    def __init__(self, file):
        self.file = file

    def number(self, kind):
        return struct.unpack(f"<{kind}", self.file.read(struct.calcsize(kind)))[0]

    def text(self):
        return self.file.read(self.number("Q"))

    def skip(self, kind):
        if kind == TEXT:
            self.text()
        elif kind == LIST:
            kind, count = self.number("I"), self.number("Q")
            if kind in SIZES:
                self.file.seek(SIZES[kind] * count, 1)
            else:
                for _ in range(count):
                    self.skip(kind)
        else:
            self.file.seek(SIZES[kind], 1)


def write_with_text(source, target, key, text):
    """Writes `source` to `target` with `text` as the value of `key`, or without it if that is None."""
    with open(source, "rb") as file, open(target, "wb") as out:
        header = Header(file)
        magic, version = file.read(4), header.number("I")
        tensors, values = header.number("Q"), header.number("Q")
        kept = []
        for _ in range(values):
            start = file.tell()
            name, kind = header.text().decode(), header.number("I")
            header.skip(kind)
            end = file.tell()
            file.seek(start)
            raw = file.read(end - start)
            assert name != "general.alignment", "another alignment is not supported"
            if name != key:
                kept.append(raw)
        if text is not None:
            name, value = key.encode(), text.encode()
            kept.append(struct.pack(f"<Q{len(name)}sIQ", len(name), name, TEXT, len(value)) + value)
        start = file.tell()
        for _ in range(tensors):
            header.text()
            file.seek(8 * header.number("I") + 4 + 8, 1)
        end = file.tell()
        file.seek(start)
        places = file.read(end - start)
        out.write(magic + struct.pack("<IQQ", version, tensors, len(kept)) + b"".join(kept) + places)
        out.write(bytes(-out.tell() % ALIGNMENT))
        file.seek(-end % ALIGNMENT, 1)
        shutil.copyfileobj(file, out, 1 << 20)

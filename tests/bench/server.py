"""A file server over a modelled link, on loopback: `server.py FOLDER [--rtt S] [--window BYTES] [--link BYTES] [--reset P] [--seed N]`.

Serves the files of FOLDER at /RUN/NAME, and as the repository bench/RUN of a model hub, with ranges, ETag (the sha256) and
If-Range. RUN is any word: bytes served are counted for each, at /stats/RUN. Prints its port.

The link, for each connection by itself, as TCP does it on a clean line:
- A new connection's first request is heard one round trip after the connect; the first byte of each answer leaves one
  round trip after its request was heard.
- A round trip carries a window of bytes, evenly. The window starts at 10 segments (RFC 6928) and doubles with each round
  trip up to WINDOW, the receiver's largest: WINDOW / RTT is the most that one connection gets. It keeps its window while idle.
- All connections share LINK bytes a second.
- P is the chance for each MiB of an answer that the connection is reset (RST) within it: the distance to the next
  reset is exponential, and drawn anew for each answer, by SEED, RUN and the answer's number.
Not modelled: lost packets, queues, and the uplink. Without RTT and LINK, files go out by sendfile, as fast as the machine can.
"""

import argparse
import hashlib
import json
import math
import os
import random
import socket
import struct
import threading
import time
from pathlib import Path

BLOCK = 64 << 10
AT_ONCE = 4 << 20
FIRST_WINDOW = 10 * 1460
LARGEST_HEAD = 64 << 10


class Link:
    """State shared by all connections."""

    def __init__(self, rate):
        self.rate = rate
        self.free = 0.0
        self.lock = threading.Lock()

    def pass_on(self, count):
        """Waits until the link has carried so many bytes."""
        if not self.rate:
            return
        with self.lock:
            now = time.monotonic()
            # What was not used is lost, but for what a scheduler's delay has cost.
            self.free = max(self.free, now - 0.01) + count / self.rate
            until = self.free
        wait(until)


def wait(until):
    left = until - time.monotonic()
    if left > 0:
        time.sleep(left)


class Server:
    def __init__(self, options):
        self.options = options
        self.link = Link(options.link)
        self.lock = threading.Lock()
        self.runs = {}
        self.hashes = {}

    def note(self, run, **counts):
        with self.lock:
            stats = self.runs.setdefault(run, {"requests": 0, "bytes": 0, "from_zero": 0, "resets": 0, "connections": 0})
            for name, count in counts.items():
                stats[name] += count
            return dict(stats)

    def etag(self, path):
        """The sha256, or for a large file, which takes too long to hash, its name and size."""
        with self.lock:
            if path not in self.hashes:
                size = path.stat().st_size
                if size > 4 << 30:
                    self.hashes[path] = hashlib.sha256(f"{path.name} {size}".encode()).hexdigest()
                else:
                    hashed = hashlib.sha256()
                    with path.open("rb") as file:
                        while block := file.read(1 << 20):
                            hashed.update(block)
                    self.hashes[path] = hashed.hexdigest()
            return self.hashes[path]

    def serve(self):
        for path in Path(self.options.folder).iterdir():
            self.etag(path)
        listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        print(listener.getsockname()[1], flush=True)
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=Connection(self, connection).run, daemon=True).start()


class Connection:
    def __init__(self, server, connection):
        self.server, self.socket = server, connection
        self.received = time.monotonic() + server.options.rtt
        self.window = FIRST_WINDOW
        self.counted = False
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if server.options.rtt or server.options.link:
            # What is counted as sent has nearly been received.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * BLOCK)

    def run(self):
        with self.socket:
            try:
                while self.request():
                    pass
            except OSError:
                pass  # The client has gone.

    def request(self):
        head = b""
        while b"\r\n\r\n" not in head:
            more = self.socket.recv(16 << 10)
            if not more or len(head) > LARGEST_HEAD:
                return False
            head += more
        line, *lines = head.split(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")
        method, path, _ = line.split(" ", 2)
        headers = {name.lower(): value.strip() for name, value in (it.split(":", 1) for it in lines)}
        path = path.split("?")[0]
        words = path.strip("/").split("/")

        if words[0] == "stats":
            return self.answer("200 OK", body=json.dumps(self.server.note(words[1])).encode())
        now = time.monotonic()
        wait(max(now, self.received) + self.server.options.rtt)
        if words[:2] == ["api", "models"]:
            repository = {"id": "/".join(words[2:4]), "sha": "0" * 40, "private": False, "siblings": []}
            return self.answer("200 OK", body=json.dumps(repository).encode())
        hub = words[0] == "bench"
        run, name = (words[1], words[-1]) if hub else (words[0], words[-1])
        file = Path(self.server.options.folder) / name
        if not file.is_file():
            return self.answer("404 Not Found", body=b"no such file")
        return self.file(method, run, file, headers, hub)

    def answer(self, status, body=b"", extra=(), length=None):
        lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body) if length is None else length}", *extra]
        self.socket.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        return True

    def file(self, method, run, file, headers, hub):
        size, etag = file.stat().st_size, f'"{self.server.etag(file)}"'
        extra = [f"ETag: {etag}", "Accept-Ranges: bytes", "Content-Type: application/octet-stream"]
        if hub:
            extra += [f"X-Repo-Commit: {'0' * 40}", f"X-Linked-Etag: {etag}", f"X-Linked-Size: {size}"]
        first, last, status = 0, size - 1, "200 OK"
        range_header = headers.get("range", "")
        if range_header.startswith("bytes=") and headers.get("if-range", etag) == etag:
            start, end = range_header[6:].split("-")
            first = int(start) if start else size - int(end)
            last = min(int(end), last) if start and end else last
            if first >= size:
                return self.answer("416 Range Not Satisfiable", extra=[f"Content-Range: bytes */{size}"])
            status = "206 Partial Content"
            extra.append(f"Content-Range: bytes {first}-{last}/{size}")
        number = self.server.note(
            run, requests=1, from_zero=int(method == "GET" and first == 0), connections=int(not self.counted)
        )["requests"]
        self.counted = True
        self.answer(status, extra=extra, length=last + 1 - first)
        return method == "HEAD" or self.body(run, number, file, first, last + 1)

    def body(self, run, number, file, at, end):
        options = self.server.options
        reset = end
        if options.reset:
            distance = random.Random(f"{options.seed} {run.rsplit('-', 1)[-1]} {number}").expovariate(1)
            reset = min(end, at + int(distance * (1 << 20) / -math.log1p(-options.reset)))
        paced = options.rtt or options.link
        due, sent_in_round = time.monotonic(), 0
        with file.open("rb") as source:
            while at < reset:
                count = min(BLOCK if paced else AT_ONCE, reset - at)
                if options.rtt:
                    count = min(count, self.window)
                    wait(due)
                    due = max(due, time.monotonic() - options.rtt) + options.rtt * count / self.window
                    sent_in_round += count
                    if sent_in_round >= self.window:
                        self.window, sent_in_round = min(2 * self.window, options.window), 0
                self.server.link.pass_on(count)
                while count:
                    sent = os.sendfile(self.socket.fileno(), source.fileno(), at, count)
                    self.server.note(run, bytes=sent)
                    at, count = at + sent, count - sent
        if reset < end:
            self.server.note(run, resets=1)
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return False
        return True


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--rtt", type=float, default=0, help="seconds")
    parser.add_argument("--window", type=int, default=1 << 20, help="bytes")
    parser.add_argument("--link", type=float, default=0, help="bytes per second; 0: no limit")
    parser.add_argument("--reset", type=float, default=0, help="chance per MiB")
    parser.add_argument("--seed", default="1")
    Server(parser.parse_args()).serve()


main()

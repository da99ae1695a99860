"""One raw request over a socket, and its outcome."""

import contextlib
import socket

# No answer takes so long, on a small machine and behind fifteen others; what does is a hang.
DEADLINE = 180
# After this time, a client with half a request closes its sending side.
PATIENCE = 0.3


class Hang(Exception):
    pass


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body


def ask(address, data, loose):
    """Sends `data` and reads to the end: the answers, none if the server just closes. What is `loose` may be no whole request, for
    whose rest the server is right to wait.

    Raises Hang if the server neither answers nor closes."""
    received = b""
    with socket.create_connection(address, timeout=DEADLINE) as connection:
        try:
            connection.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass  # it has closed before it has read all, which it may
        except TimeoutError:
            raise Hang("it does not read") from None
        connection.settimeout(PATIENCE if loose else DEADLINE)
        while True:
            try:
                if not (piece := connection.recv(1 << 16)):
                    break
                received += piece
            except TimeoutError:
                if connection.gettimeout() == DEADLINE:
                    raise Hang(f"after {received[:200]!r}") from None
                connection.settimeout(DEADLINE)
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_WR)
            except ConnectionResetError:
                break
    return answers(received)


def answers(received):
    found = []
    while received:
        head, _, rest = received.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        parts = lines[0].split(" ", 2)
        if not lines[0].startswith("HTTP/1.") or len(parts) < 2 or not parts[1].isdigit():
            raise ValueError(f"no HTTP: {received[:200]!r}")
        status = int(parts[1])
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        if status < 200 or status in (204, 304):
            body, received = b"", rest
        elif "chunked" in headers.get("transfer-encoding", ""):
            body, received = dechunk(rest)
        else:
            length = int(headers.get("content-length", len(rest)))
            # An answer to HEAD has its length and no body.
            if rest[:length].startswith(b"HTTP/1.") or not rest:
                length = 0
            body, received = rest[:length], rest[length:]
        found.append(Answer(status, headers, body))
    return found


def dechunk(rest):
    body = b""
    while True:
        line, _, rest = rest.partition(b"\r\n")
        size = int(line, 16) if line else 0
        if size == 0:
            return body, rest.partition(b"\r\n")[2]
        body, rest = body + rest[:size], rest[size + 2 :]

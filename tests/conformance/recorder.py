"""A proxy between a client and the host that keeps what each sent."""

import http.client
import http.server
import json
import threading
import urllib.parse

# What a request says of its dialect; the rest names machines and libraries.
TOLD = ("content-type", "anthropic-version", "request-id", "x-should-retry", "retry-after")
HOPS = {"connection", "keep-alive", "transfer-encoding", "upgrade", "te", "trailer", "proxy-connection"}
KEPT_BYTES = 4000
HANG_SECONDS = 300


class Recorder(http.server.ThreadingHTTPServer):
    """Forwards to `upstream`. `exchanges` are those since `begin`, each with method, path, request, status and answer."""

    daemon_threads = True
    # A client that opens many connections at once is not refused.
    request_queue_size = 64

    def __init__(self, upstream):
        super().__init__(("127.0.0.1", 0), Exchange)
        self.upstream = urllib.parse.urlsplit(upstream).netloc
        self.exchanges = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    def begin(self):
        self.exchanges = []

    def stop(self):
        self.shutdown()
        self.server_close()

    def handle_error(self, *_):
        # A client that leaves is no fault of the proxy.
        pass

    def text(self):
        """The exchanges, those that were refused first, then by length."""
        ordered = sorted(self.exchanges, key=lambda each: (each["status"] < 400, len(each["request"])))
        return "\n\n".join(render(each) for each in ordered)


def render(each):
    lines = [f"{each['method']} {each['path']}", *each["headers"], "", cut(each["request"]), "", f"→ {each['status']}"]
    return "\n".join([*lines, *each["answer_headers"], "", cut(each["answer"])])


def cut(data):
    text = data[:KEPT_BYTES].decode("utf-8", "replace")
    if len(data) > KEPT_BYTES:
        return f"{text}… ({len(data)} bytes)"
    try:
        return json.dumps(json.loads(text), indent=1, ensure_ascii=False)
    except ValueError:
        return text


class Exchange(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def forward(self):
        body = self.body()
        record = {"method": self.command, "path": self.path, "request": body, "status": 0, "answer": b"", "answer_headers": []}
        record["headers"] = [f"{name}: {value}" for name, value in self.headers.items() if name.lower() in TOLD]
        self.server.exchanges.append(record)
        headers = {name: value for name, value in self.headers.items() if name.lower() not in HOPS | {"host", "content-length"}}
        headers |= {"Host": self.server.upstream, "Connection": "close"}
        upstream = http.client.HTTPConnection(self.server.upstream, timeout=HANG_SECONDS)
        try:
            upstream.request(self.command, self.path, body if body or self.command == "POST" else None, headers)
            answer = upstream.getresponse()
            record["status"] = answer.status
            record["answer_headers"] = [f"{name}: {value}" for name, value in answer.getheaders() if name.lower() in TOLD]
            self.relay(answer, record)
        finally:
            upstream.close()

    do_GET = do_POST = do_DELETE = do_HEAD = do_PUT = do_PATCH = do_OPTIONS = forward

    def body(self):
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        pieces = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return b"".join(pieces)

    def relay(self, answer, record):
        self.send_response_only(answer.status, answer.reason)
        for name, value in answer.getheaders():
            if name.lower() not in HOPS:
                self.send_header(name, value)
        bodiless = self.command == "HEAD" or answer.status in (204, 304)
        chunked = not bodiless and answer.getheader("Content-Length") is None
        if chunked:
            self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        while not bodiless and (piece := answer.read1(1 << 16)):
            record["answer"] += piece
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece) if chunked else piece)
        if chunked:
            self.wfile.write(b"0\r\n\r\n")

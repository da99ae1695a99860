"""Servers of OpenAI's dialect behind the gateway: one that answers any request, and ones that each do one thing wrong."""

import http.server
import json
import threading

ANSWER = {
    "id": "1",
    "created": 1,
    "model": "stub",
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
}
CHOICE = {"index": 0, "finish_reason": "stop"}
TEXT = {**ANSWER, "object": "text_completion", "choices": [{**CHOICE, "text": "Hi"}]}
CHAT = {**ANSWER, "object": "chat.completion", "choices": [{**CHOICE, "message": {"role": "assistant", "content": "Hi"}}]}
VECTOR = {"object": "embedding", "embedding": [1.0]}
CHUNK = b'data: {"choices":[{"index":0,"delta":{"content":"Hi"}}]}\n\n'

# JSON of the wrong kind wherever a stream has some.
ODD = [
    7, [], [None], {"choices": 7}, {"choices": {}}, {"choices": [7, "a", None, [], {}]}, {"choices": [{"index": -1}, {"index": "a"}, {"index": 2**70}]},
    *({"choices": [{"index": 0, "delta": odd, "text": odd, "logprobs": odd, "message": odd, "finish_reason": odd}]} for odd in (None, 7, "a", [], [7], {})),
    *({"choices": [{"delta": {"role": odd, "content": odd, "reasoning": odd, "tool_calls": odd}}]} for odd in (None, 7, "a", [], ["a"], ["a"], [[]], {})),
    *({"choices": [{"delta": {"tool_calls": [{"index": 0, "id": odd, "function": odd}]}}]} for odd in (None, "a", 7, [], {}, {"name": 7, "arguments": []})),
    *({"usage": odd, "timings": odd, "model": odd, "id": odd} for odd in (7, "a", [], {"prompt_tokens": -1, "completion_tokens": 1e308, "predicted_ms": "a"})),
]  # fmt: skip
EVENTS = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in ODD)
STREAMS = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"

# Each is the whole output of such a server before it closes.
BAD = {
    "silent": b"",
    "no HTTP": b"\x00\x01 hello\r\n\r\n",
    "an endless head": b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 50_000,
    "cut": b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 999\r\n\r\n{",
    "cut stream": b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    + b"%x\r\n%s\r\n" % (len(CHUNK), CHUNK),
    "wrong chunks": b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    "a stream without an end": b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: %d\r\n\r\n%s" % (len(CHUNK), CHUNK),
    "two lengths": b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 5\r\n\r\n{}",
    "a redirection": b"HTTP/1.1 307 Temporary Redirect\r\nlocation: http://127.0.0.1:9/\r\ncontent-length: 0\r\n\r\n",
    "an error's page": b"HTTP/1.1 500 Internal Server Error\r\ncontent-type: text/html\r\ncontent-length: 11\r\n\r\n<h1>No</h1>",
    "odd events": STREAMS + EVENTS + b"data: [DONE]\n\n",
    "odd events and a word": STREAMS + CHUNK + EVENTS + CHUNK + b"data: [DONE]\n\n",
    "no JSON": STREAMS + b"data: {\n\ndata: \xff\xfe\n\ndata\n\n:\n\n\r\ndata:" + b"x" * 100_000 + b"\n\n" + CHUNK + b"data: [DONE]",
    "odd JSON": b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n{"choices": [7, {"message": [], "text": 7, "logprobs": 7}], "usage": "a"}',
    "switching": b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
}


def instance(schema):
    """A value that the schema allows, for the schemas of our tasks."""
    if "enum" in schema:
        return schema["enum"][0]
    if schema.get("type") == "object":
        return {name: instance(part) for name, part in schema.get("properties", {}).items()}
    return {"boolean": False, "integer": schema.get("minimum", 0), "array": [], "string": "Hi"}.get(schema.get("type"))


def chat(request):
    """An answer in the requested schema."""
    try:
        content = json.dumps(instance(request["response_format"]["json_schema"]["schema"]))
    except (AttributeError, KeyError, TypeError):
        return CHAT
    return {**CHAT, "choices": [{**CHOICE, "message": {"role": "assistant", "content": content}}]}


def streamed(request):
    delta = chat(request)["choices"][0]["message"]
    chunk = {**ANSWER, "object": "chat.completion.chunk", "choices": [{**CHOICE, "delta": delta}]}
    return b"data: " + json.dumps(chunk).encode() + b"\n\ndata: [DONE]\n\n"


def vectors(texts):
    count = len(texts) if isinstance(texts, list) else 1
    return {**ANSWER, "object": "list", "data": [{**VECTOR, "index": index} for index in range(count)]}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send(200, b"{}")

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        behaviour = self.server.behaviour
        bad = behaviour(self.path, body) if callable(behaviour) else BAD.get(behaviour)
        if bad is not None:
            self.wfile.write(bad)
            self.close_connection = True
            return
        if self.path.endswith("/responses"):
            return self.send(404, b"{}")
        try:
            request = json.loads(body)
        except (ValueError, RecursionError):
            request = {}
        request = request if isinstance(request, dict) else {}
        if request.get("stream") is True:
            return self.send(200, streamed(request), "text/event-stream")
        answer = chat(request) if "chat" in self.path else vectors(request.get("input")) if "embed" in self.path else TEXT
        self.send(200, json.dumps(answer).encode())

    def send(self, status, body, kind="application/json"):
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_):
        pass  # disconnects are part of the test


class Stub:
    """Runs while the block does; `behaviour` is one of BAD, a function of the request's path and body to the whole
    output or None, or None."""

    def __enter__(self):
        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.behaviour = None
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def behave(self, behaviour):
        self.server.behaviour = behaviour

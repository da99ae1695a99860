"""Requests that no client should send, made from a seed, and which answers to them are right."""

import json
import random
from typing import NamedTuple

from reading import refuse

# What the answer must be, where that is certain: a refusal (4xx), or an answer (2xx) as long as the server behind does its work.
# Of other requests, the gateway may do either.
REFUSED, ANSWERED = "refused", "answered"
# By our own engine. Another server may take it.
REFUSED_BY_ENGINE = "refused by the engine"


class Sent(NamedTuple):
    data: bytes
    # They may be no whole request.
    loose: bool
    expected: str | None = None



JSON_PATHS = [
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/embeddings",
    "/v1/context/save",
    "/v1/context/load",
    "/v1/context/delete",
    "/v1/responses",
    "/v1/responses/compact",
    "/v1/messages",
    "/v1/messages/count_tokens",
    "/api/chat",
    "/api/generate",
    "/api/embed",
    "/api/show",
    "/v1/triage",
    "/v1/compress",
    "/v1/summarize",
    "/v1/brief",
]
# Those that any server behind can answer.
ANSWERING = ["/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages", "/api/chat", "/api/generate", "/api/show"]
# Those whose `stream` the gateway reads, and of these, those whose other fields reach the engine as they came.
STREAMING = ["/v1/chat/completions", "/v1/completions", "/v1/messages", "/api/chat", "/api/generate"]
PASSED_ON = STREAMING[:3]
PATHS = [*JSON_PATHS, "/v1/models", "/v1/models/fast", "/v1/context", "/health", "/metrics", "/openapi.json", "/"]
ADMIN = ["/tierbar/v1/status", "/tierbar/v1/config", "/tierbar/v1/chats", "/tierbar/v1/downloads", "/tierbar/v1/tiers/fast/stop"]
KNOWN = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "TRACE", "CONNECT"]
METHODS = [*KNOWN, "BREW", "get", "P" * 300, "G\x01T"]
# A valid body of each path; what follows breaks one part of it.
GOOD = {
    "/v1/chat/completions": {
        "model": "fast",
        "messages": [{"role": "user", "content": "Hi"}],
        "stream": False,
        "max_tokens": 2,
        "temperature": 0.5,
        "stop": ["."],
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
        "keep_alive": "5m",
        "n": 1,
        "logit_bias": {"1": 1},
        "response_format": {"type": "json_object"},
        "stream_options": {"include_usage": True},
    },
    "/v1/completions": {"model": "fast", "prompt": "Hi", "max_tokens": 2, "echo": False, "logprobs": 1, "seed": 1},
    "/v1/embeddings": {"model": "fast", "input": "Hi", "encoding_format": "float"},
    "/v1/context/save": {"name": "x", "model": "fast", "prompt": "Hi"},
    "/v1/context/load": {"name": "x", "model": "fast"},
    "/v1/context/delete": {"name": "x"},
    "/v1/responses": {
        "model": "fast",
        "instructions": "Be brief.",
        "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]}],
        "max_output_tokens": 2,
        "stream": False,
        "tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}}],
        "tool_choice": "auto",
        "text": {"format": {"type": "text"}},
    },
    "/v1/responses/compact": {
        "model": "fast",
        "instructions": "Be brief.",
        "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
            {"type": "message", "role": "assistant", "content": "Hello"},
        ],
    },
    "/v1/messages": {
        "model": "fast",
        "max_tokens": 2,
        "system": [{"type": "text", "text": "Be brief."}],
        "messages": [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "f", "input": {"a": 1}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "2"}]},
        ],
        "tools": [{"name": "f", "input_schema": {"type": "object"}}],
        "tool_choice": {"type": "auto"},
        "thinking": {"type": "disabled"},
        "stop_sequences": ["."],
        "stream": False,
    },
    "/v1/messages/count_tokens": {"model": "fast", "messages": [{"role": "user", "content": "Hi"}]},
    "/api/chat": {
        "model": "fast",
        "messages": [{"role": "user", "content": "Hi"}],
        "options": {"num_predict": 2, "temperature": 0.5, "stop": ["."]},
        "keep_alive": "5m",
        "think": False,
        "format": "json",
        "stream": False,
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
    },
    "/api/generate": {"model": "fast", "prompt": "Hi", "system": "x", "options": {"num_predict": 2}, "raw": False, "stream": False},
    "/api/embed": {"model": "fast", "input": ["Hi"], "truncate": True},
    "/api/show": {"model": "fast"},
    "/v1/triage": {"texts": ["Hi", "The server is down!"], "model": "fast"},
    "/v1/compress": {"text": "The quick brown fox jumps over the lazy dog.", "words": 10, "model": "fast"},
    "/v1/summarize": {"text": "The quick brown fox jumps over the lazy dog.", "words": 10, "model": "fast"},
    "/v1/brief": {"lines": '{"level": "error", "message": "disk full"}', "model": "fast"},
}
WRONG = [
    None, True, False, 0, -1, 1, 1.5, -0.0, 1e308, 2**31, 2**63, 2**64, -(2**63), 10**400, "", "x", "auto", "fast", "../../etc/passwd",
    "\x00", "a\x00b", "\ud800", "💥" * 50, "x" * 5000, [], [[]], [None], ["x"] * 200, {}, {"": ""}, {"a": {"b": {"c": []}}},
    [{"role": "user"}], [{"role": 1, "content": 2}], [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://127.0.0.1:9/"}}]}],
]  # fmt: skip
# Then the answer's end is the connection's.
CLOSE = "Connection: close"
TRAVERSALS = [
    "/../../../etc/passwd", "/v1/models/..%2f..%2fetc%2fpasswd", "/v1/models/%00", "/v1/models/%ff%fe", "/v1//models", "/v1/models/",
    "//v1/models", "/%2e%2e/%2e%2e/etc/passwd", "/assets/../../Cargo.toml", "/v1/models/" + "a" * 9000, "/v1/models/%", "/v1/models/%zz",
    "/v1/models/fast?x=" + "y" * 5000, "/v1/models/fast#x", "*", "http://127.0.0.1/v1/models", "/v1/models/\u00e9", "/" + "/" * 3000, "/?" + "&" * 3000,
]  # fmt: skip


def request(method, path, body=b"", headers=(), length=None, host="127.0.0.1"):
    lines = [f"{method} {path} HTTP/1.1"]
    if host is not None:
        lines.append(f"Host: {host}")
    lines += headers
    if not any(line.startswith("Connection:") for line in headers):
        lines.append(CLOSE)
    if length is not False and (body or length is not None):
        lines.append(f"Content-Length: {len(body) if length is None else length}")
    return "\r\n".join(lines).encode("utf-8", "surrogatepass") + b"\r\n\r\n" + body


def posted(path, body):
    return request("POST", path, body, ["Content-Type: application/json"])


def read(body):
    """What these bytes are in JSON, by Python's parser, which takes no more than RFC 8259 but for the constants; None for nothing."""
    try:
        return json.loads(body.decode(), parse_constant=refuse)
    except (ValueError, RecursionError):
        return None


def is_number(value):
    # Python's booleans are integers.
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def is_wrong(value, fits):
    """Whether a field that may be left out, or null, has a value of another type."""
    return value is not None and not fits(value)


def refused_type(path, fields):
    """What must become of an object for the types of its fields, where that is certain."""
    def is_list(value):
        return isinstance(value, list)

    messages, options = fields.get("messages"), fields.get("options")
    if path in STREAMING and is_wrong(fields.get("stream"), lambda value: isinstance(value, bool)):
        return REFUSED
    if path == "/api/chat" and is_wrong(messages, is_list):
        return REFUSED
    # With nothing to answer, Ollama's only load the model.
    asks = path == "/api/chat" and messages or path == "/api/generate" and fields.get("prompt")
    if asks and isinstance(options, dict) and any(is_wrong(options.get(name), is_number) for name in ("num_predict", "temperature")):
        return REFUSED
    if path not in PASSED_ON:
        return None
    has_none = path != "/v1/completions" and not is_list(messages)
    is_odd = any(is_wrong(fields.get(name), is_number) for name in ("max_tokens", "temperature"))
    return REFUSED_BY_ENGINE if has_none or is_odd else None


def sent(path, body):
    """A whole request. Each path takes only objects. Of these, most may be right: OpenAI's may go on to a server that takes them."""
    fields = read(body)
    return Sent(posted(path, body), False, refused_type(path, fields) if isinstance(fields, dict) else REFUSED)


def written(value):
    # Lone surrogates stay escapes, numbers beyond all bounds are written out.
    return json.dumps(value).encode()


def wrong_field(random):
    path = random.choice(JSON_PATHS)
    body = dict(GOOD[path])
    for _ in range(random.choice([1, 1, 1, 2, 3])):
        body[random.choice([*body, "stream", "think", "grammar", "x"])] = random.choice(WRONG)
    return sent(path, written(body))


def wrong_inside(random):
    """Replaces a value somewhere within the body, at any depth."""
    path = random.choice(JSON_PATHS)
    body = json.loads(json.dumps(GOOD[path]))
    places = []

    def walk(value):
        for key in range(len(value)) if isinstance(value, list) else list(value):
            places.append((value, key))
            if isinstance(value[key], (dict, list)):
                walk(value[key])

    walk(body)
    within, key = random.choice(places)
    within[key] = random.choice(WRONG)
    return sent(path, written(body))


def not_an_object(random):
    value = random.choice([*WRONG, [GOOD["/v1/chat/completions"]]])
    return sent(random.choice(JSON_PATHS), written(value))


def broken_json(random):
    path = random.choice(JSON_PATHS)
    body = bytearray(written(GOOD[path]))
    for _ in range(random.randint(1, 4)):
        at = random.randrange(len(body))
        harm = random.randrange(4)
        if harm == 0:
            del body[at:]
            body += b" "
        elif harm == 1:
            body[at] = random.randrange(256)
        elif harm == 2:
            body[at:at] = random.choice([b",", b"}", b"{", b"\x00", b"\xff\xfe", b"//", b"NaN", b"'"])
        else:
            del body[at : at + random.randint(1, 9)]
            body += b" "
    return sent(path, bytes(body))


def deep(random):
    depth = random.choice([100, 127, 128, 129, 1000, 20_000, 200_000])
    opened, closed = random.choice([(b"[", b"]"), (b'{"a":', b"}")])
    nest = opened * depth + b"1" + closed * depth * random.choice([0, 1])
    field = random.choice([b"messages", b"model", b"x", b"tools", b"keep_alive", b"prompt"])
    return sent(random.choice(JSON_PATHS), b'{"%s":%s}' % (field, nest))


def numbers(random):
    number = random.choice([b"1e999", b"-1e999", b"1" * 3000, b"0." + b"0" * 3000 + b"1", b"01", b"+1", b"1.", b".5", b"0x10", b"Infinity", b"1e-999", b"-"])
    field = random.choice([b"max_tokens", b"temperature", b"keep_alive", b"n", b"seed", b"stream", b"model"])
    body = b'{"model":"fast","messages":[{"role":"user","content":"Hi"}],"max_tokens":2,"%s":%s}' % (field, number)
    return sent("/v1/chat/completions", body)


def twice(random):
    field = random.choice(["model", "stream", "messages", "max_tokens", "keep_alive"])
    first, second = (written(random.choice(["fast", *WRONG])) for _ in range(2))
    body = b'{"messages":[{"role":"user","content":"Hi"}],"max_tokens":2,"%s":%s,"%s":%s}'
    return sent("/v1/chat/completions", body % (field.encode(), first, field.encode(), second))


def wrong_text(random):
    text = bytes(random.choice([[0xFF, 0xFE], [0xC3, 0x28], [0xED, 0xA0, 0x80], [0xF8, 0x88], [0x00], [0xEF, 0xBB, 0xBF], list(range(32))]))
    body = b'{"model":"fast","max_tokens":2,"messages":[{"role":"user","content":"%s"}]}' % text
    return sent("/v1/chat/completions", random.choice([body, text + body, body + text]))


def wrong_length(random):
    body = written(GOOD["/v1/chat/completions"])
    length = random.choice([len(body) + 10, 0, 1, len(body) - 5, -1, "x", "1e3", 2**63, 2**64, 10**30, "5, 6", " ", "0x10", "+5"])
    return Sent(request("POST", "/v1/chat/completions", body, length=length), True, REFUSED)


def two_lengths(random):
    body = written(GOOD["/v1/chat/completions"])
    length = random.choice([len(body), 3, 99999])
    headers = [f"Content-Length: {length}"]
    if random.random() < 0.5:
        headers.append("Transfer-Encoding: chunked")
    # Twice the same length may be taken for one.
    expected = None if length == len(body) and len(headers) == 1 else REFUSED
    return Sent(request("POST", "/v1/chat/completions", body, headers), True, expected)


def chunked(random):
    body = written(GOOD["/v1/chat/completions"])
    size = random.choice([b"%x" % len(body), b"ffffffffffffffff", b"fffffffffffffffff", b"-1", b"zz", b"", b"0", b"%x;ext=%s" % (len(body), b"y" * 5000), b"5"])
    end = random.choice([b"\r\n0\r\n\r\n", b"\r\n", b"0\r\n\r\n", b"\r\n0\r\nTrailer: x\r\n\r\n", b"\n0\n\n", b""])
    coding = random.choice(["chunked", "Chunked", "gzip, chunked", "chunked, chunked", "identity", "x"])
    head = request("POST", "/v1/chat/completions", headers=[f"Transfer-Encoding: {coding}"], length=False)
    # What the last chunk and the coding lack, a server may overlook.
    expected = None if size.startswith(b"%x" % len(body)) else REFUSED
    return Sent(head + size + b"\r\n" + body + end, True, expected)


def headers(random):
    strange = random.choice([
        ["X: " + "y" * 100_000], [f"X-{number}: y" for number in range(500)], ["X"], [": y"], ["X Y: z"], ["X: \x00"], ["X: \x7f\x01"],
        ["Host: evil.example"], ["Host: a", "Host: b"], ["Content-Type: \xff"], ["Expect: 100-continue"], ["Expect: 200-ok"],
        ["Connection: upgrade", "Upgrade: websocket"], ["Connection: close, keep-alive, x"], ["Origin: http://evil.example"], ["Origin: null"],
        ["Authorization: Bearer"], ["Authorization: Basic !!"], ["Authorization: Bearer " + "x" * 5000], ["Cookie: tierbar_session_11435=" + "%" * 999],
        [" folded: x"], ["X: y", " folded"], ["Range: bytes=0-1,2-3,-1"], ["If-None-Match: *"], ["Content-Encoding: gzip"], ["Accept: \t"],
        ["x-tierbar-tier: " + "z" * 900], ["x-tierbar-chain: ../x"], ["x-tierbar-queue: maybe"],
        ["x-tierbar-queue: only", "x-tierbar-attempts: 1"], ["x-tierbar-queue: only", "x-tierbar-attempts: 1", "x-tierbar-webhook: http://127.0.0.1:9/"],
        ["x-tierbar-queue: allow", "x-tierbar-attempts: 1", "x-tierbar-deadline: 1m"], ["x-tierbar-queue: only", "x-tierbar-attempts: 0"],
        ["x-tierbar-queue: only", "x-tierbar-attempts: 1", "Idempotency-Key: " + "k" * random.choice([1, 300])],
    ])  # fmt: skip
    path = random.choice([*PATHS, *ADMIN])
    body = written(GOOD[path]) if path in GOOD else b""
    host = random.choice(["127.0.0.1", "127.0.0.1", None, "", "[::1", "a b", "localhost:99999", "\x00"])
    # None of these has the owner's token, and other sites and hosts get nothing.
    strangers = ("Origin: http://evil.example", "Host: evil.example")
    expected = REFUSED if path in ADMIN or strange[0] in strangers else None
    return Sent(request("POST" if body else "GET", path, body, strange, host=host), True, expected)


def paths(random):
    return Sent(request(random.choice(METHODS[:7]), random.choice(TRAVERSALS)), True)


def methods(random):
    method, path = random.choice(METHODS), random.choice([*PATHS, *ADMIN])
    # Which methods a path has, everyone may know.
    expected = REFUSED if method not in KNOWN or (path in ADMIN and method != "OPTIONS") else None
    return Sent(request(method, path, random.choice([b"", b"{}", b"[]"])), True, expected)


def half(random):
    whole = random.choice([wrong_field, wrong_inside, headers, methods])(random).data
    return Sent(whole[: random.randrange(len(whole))], True, REFUSED)


def noise(random):
    kind = random.randrange(4)
    if kind == 0:
        return Sent(random.randbytes(random.randint(1, 3000)), True, REFUSED)
    if kind == 1:  # the start of TLS, of HTTP/2, of SSH, of Redis
        greeting = [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"SSH-2.0-x\r\n", b"*1\r\n$4\r\nPING\r\n"]
        return Sent(random.choice(greeting), True, REFUSED)
    if kind == 2:
        version = random.choice(["HTTP/0.9", "HTTP/1.0", "HTTP/2.0", "HTTP/9.9", "HTP/1.1", ""])
        # That of 1996 is still spoken.
        expected = None if version == "HTTP/1.0" else REFUSED
        return Sent(f"GET /v1/models {version}\r\nHost: 127.0.0.1\r\n\r\n".encode(), True, expected)
    return Sent(random.choice([b"\r\n" * 50, b"\n\n", b"\x00" * 50, b"GET\r\n\r\n", b"GET  / HTTP/1.1\r\n\r\n"]), True, REFUSED)


def pipelined(random):
    parts = [random.choice([wrong_field, broken_json, methods, paths])(random).data for _ in range(random.randint(2, 5))]
    first = [part.replace(CLOSE.encode() + b"\r\n", b"") for part in parts[:-1]]
    return Sent(b"".join([*first, parts[-1]]), True)


def one_letter(random):
    """A valid request with bytes changed anywhere, even in the head."""
    path = random.choice(JSON_PATHS)
    whole = bytearray(posted(path, written(GOOD[path])))
    for _ in range(random.randint(1, 6)):
        whole[random.randrange(len(whole))] = random.randrange(256)
    return Sent(bytes(whole), True)


def nothing(random):
    """A request with nothing wrong."""
    path = random.choice(ANSWERING)
    return Sent(posted(path, written(GOOD[path])), False, ANSWERED)


KINDS = [
    nothing, wrong_field, wrong_field, wrong_inside, wrong_inside, not_an_object, broken_json, broken_json, deep, numbers, twice, wrong_text,
    wrong_length, two_lengths, chunked, headers, headers, paths, methods, half, noise, pipelined, one_letter,
]  # fmt: skip


# As long as the tier's name, so that a body keeps its length.
CHAIN = "walk"


def requests(seed, count, chain=False, token=None, engine=False):
    """Those that name the tier name the chain if that is wanted. Those for saved contexts, which are the owner's, have the token.

    `engine`: they are for our own engine."""
    chance = random.Random(seed)
    for number in range(count):
        kind = KINDS[number % len(KINDS)]
        made = kind(chance)
        if made.expected == REFUSED_BY_ENGINE:
            made = made._replace(expected=REFUSED if engine else None)
        if chain:
            made = made._replace(data=made.data.replace(b'"fast"', f'"{CHAIN}"'.encode()))
        if token and made.data.startswith(b"POST /v1/context/"):
            made = made._replace(data=made.data.replace(b"\r\n", f"\r\nAuthorization: Bearer {token}\r\n".encode(), 1))
        yield f"{seed}/{number} {kind.__name__}", made

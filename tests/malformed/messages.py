"""An MCP server whose messages are broken, over HTTP and from a program. What must not be: a panic, `internal`, a hang, a tool that it does
not have."""

import http.server
import json
import random
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import mutation
import wire
from corpus import request

AT_ONCE = 4
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = [{"name": "weather", "description": "Tells the weather.", "inputSchema": SCHEMA}, {"name": "time", "description": "Tells the time.", "inputSchema": SCHEMA}]


def sound(asked):
    """The right answer to a message, or None if there is none."""
    results = {
        "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "played", "version": "1"}},
        "tools/list": {"tools": TOOLS},
    }
    result = results.get(asked.get("method"))
    return result and {"jsonrpc": "2.0", "id": asked.get("id"), "result": result}


def answer(seed, asked):
    """The bytes of an answer, broken more often the later it comes."""
    answer = sound(asked)
    if answer is None:
        return None
    chance = random.Random(f"{seed} {asked['method']}")
    if chance.random() < (0.2 if asked["method"] == "initialize" else 0.9):
        return mutation.of_json(chance, answer).replace(b"\n", b" ")
    return json.dumps(answer).encode()


class Handler(http.server.BaseHTTPRequestHandler):
    """Its path is the seed."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))))
        said = answer(self.path, asked)
        streamed = random.Random(self.path).random() < 0.5
        body = b"" if said is None else b"data: %s\n\n" % said if streamed else said
        self.send_response(202 if said is None else 200)
        self.send_header("content-type", "text/event-stream" if streamed else "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.send_error(405)

    do_DELETE = do_GET

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_):
        pass


def fault_of(answers):
    """What is wrong with the host's account of such a server, or None."""
    if not answers:
        return "closed without an answer"
    status, body = answers[-1].status, answers[-1].body
    try:
        body = json.loads(body)
        if status == 200:
            names = [tool["name"] for tool in body["tools"]]
            return None if all(isinstance(name, str) for name in names) else f"odd names: {names}"
        code = body["error"]["code"]
    except (ValueError, KeyError, TypeError):
        return f"{status} without a code: {answers[-1].body[:300]!r}"
    return f"{status} {code}: {body}" if code == "internal" or status < 400 else None


def run(host, seed, count):
    """Has the host try out `count` such servers: what was wrong, and how many of them had tools."""
    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    def one(number):
        if number % 10 == 0:
            played = {"command": [sys.executable, __file__, f"{seed} {number}"], "read": [sys.prefix, str(mutation.__file__).rsplit("/", 2)[0]]}
        else:
            played = {"url": f"http://127.0.0.1:{server.server_port}/{seed}-{number}"}
        body = json.dumps({"server": played}).encode()
        headers = ["Content-Type: application/json", f"Authorization: Bearer {host.token}"]
        try:
            answers = wire.ask(host.address, request("PUT", f"/tierbar/v1/mcp-servers/s{number % 8}", body, headers), False)
        except wire.Hang:
            return f"{seed} {number}: hangs", 0
        fault = fault_of(answers)
        return fault and f"{seed} {number}, {'program' if number % 10 == 0 else 'address'}: {fault}", answers[-1:] and answers[-1].status == 200

    with ThreadPoolExecutor(AT_ONCE) as pool:
        outcomes = list(pool.map(one, range(count)))
    server.shutdown()
    server.server_close()
    return [fault for fault, _ in outcomes if fault], sum(bool(well) for _, well in outcomes)


def main():
    """Is such a server over stdin and stdout."""
    for line in sys.stdin:
        if (said := answer(sys.argv[1], json.loads(line))) is not None:
            sys.stdout.buffer.write(said + b"\n")
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()

"""An MCP server whose messages are broken, over HTTP and from a program. What must not be: a panic, `internal`, a hang, a tool that it does
not have, a result that half a letter costs, and a program's answer that is waited for although it has come.

One server in four lists its tools as it should, and an agent uses one, whose result is broken."""

import http.server
import itertools
import json
import queue
import random
import sys
import threading
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import mutation
import wire
from chunks import chunk
from corpus import request, written
from streams import HEAD

# Some answers are waited for in vain, for up to a minute.
AT_ONCE = 16
# What begins the seeds of servers whose results are broken, and nothing else of them.
RESULTS = "results"
TEXT = ["Grüße", " aus München", " 👩‍👩‍👧", " 会议", "\n", '"quoted"', " end."]
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


def result(seed):
    """The result of a tool as bytes that may be no JSON, and what is read of it, or None if that is not certain."""
    chance = random.Random(f"{seed} result")
    before, behind = ("".join(chance.choices(TEXT, k=3)) for _ in range(2))
    harm = chance.random()
    whole = {"content": [{"type": "text", "text": f"{before}@@{behind}"}], "isError": False}
    if harm < 0.6:
        no_letter = b"" if harm < 0.2 else chance.choice(mutation.NO_LETTERS)
        data = json.dumps(whole, ensure_ascii=chance.random() < 0.5).encode().replace(b"@@", no_letter)
        return data, before + ("\ufffd" if no_letter else "") + behind
    return mutation.of_json(chance, whole), None


def answer(seed, asked):
    """The bytes of an answer, broken more often the later it comes."""
    breaks = not seed.startswith(RESULTS)
    if asked.get("method") == "tools/call":
        # The number of the request is never broken, so that the answer is known to be its.
        head = json.dumps({"jsonrpc": "2.0", "id": asked["id"]}).encode()
        return head[:-1] + b', "result": ' + result(seed)[0].replace(b"\n", b" ") + b"}"
    answer = sound(asked)
    if answer is None:
        return None
    chance = random.Random(f"{seed} {asked['method']}")
    if breaks and chance.random() < (0.2 if asked["method"] == "initialize" else 0.9):
        return mutation.of_json(chance, answer).replace(b"\n", b" ")
    return json.dumps(answer).encode()


class Handler(http.server.BaseHTTPRequestHandler):
    """Its path is the seed."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))))
        seed = self.path.removeprefix("/")
        said = answer(seed, asked)
        # `rmcp` passes over an event that is no JSON, and the result in it is waited for.
        streamed = not seed.startswith(RESULTS) and random.Random(seed).random() < 0.5
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


def model(path, body):
    """What the model behind the gateway says: a call of the first tool, and behind its result a word."""
    if path.endswith("/responses"):
        return None
    asked = json.loads(body)
    tools = asked.get("tools")
    if asked["messages"][-1]["role"] == "tool" or not tools:
        events = [chunk({"role": "assistant", "content": "Done."}), chunk({}, "stop")]
    else:
        function = {"name": tools[0]["function"]["name"], "arguments": '{"city": "Paris"}'}
        calls = [{"index": 0, "id": "call-1", "type": "function", "function": function}]
        events = [chunk({"role": "assistant", "tool_calls": calls}), chunk({}, "tool_calls")]
    return HEAD + b"".join(b"data: %s\n\n" % json.dumps(event).encode() for event in events) + b"data: [DONE]\n\n"


def used(host, name):
    """Has an agent use a tool of the server, and allows it: the event with the result, or None."""

    def post(path, body):
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {host.token}"}
        return urllib.request.urlopen(urllib.request.Request(host.url + path, written(body), headers), timeout=wire.DEADLINE)

    found, run = None, None
    with post("/v1/agent", {"model": "fast", "input": "Warm?", "servers": [name], "way": "calls", "stream": True}) as events:
        for line in events:
            if not line.startswith(b"data:"):
                continue
            event = json.loads(line[5:])
            if event["type"] == "begun":
                run = event["run"]
            elif event["type"] == "consent":
                post(f"/v1/agent/{run}/consent", {"id": event["question"]["id"], "allow": "once"}).close()
            elif event["type"] == "tool_result":
                found = event
            elif event["type"] == "failed":
                return {"failed": True, "text": f"the turn: {event}"}
    return found


def fault_of_use(seed, kind, event):
    """What is wrong with the result that an agent has of such a server, or None."""
    if event is None:
        return "the tool has no result"
    text, expected = event["text"], result(seed)[1]
    if "has not answered" in text or text.startswith("the turn: ") or "internal" in text:
        return text
    if event["failed"]:
        # What an address sends is read by `rmcp` alone.
        return f"failed: {text}" if expected and (kind == "program" or "\ufffd" not in expected) else None
    return f"{text!r} in place of {expected!r}" if expected not in (None, text) else None


def run(host, stub, seed, count):
    """Has the host try out `count` such servers: what was wrong, and how many of them had tools."""
    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    stub.behave(model)
    # One server at a time has a name, and keeps its kind: a server that is changed keeps the fields that it had.
    names = {"address": queue.SimpleQueue(), "program": queue.SimpleQueue()}
    for kind, number in itertools.product(names, range(AT_ONCE)):
        names[kind].put(f"{kind}-{number}")

    def one(number):
        uses = number % 4 == 3
        kind = "program" if (number % 8 == 3 if uses else number % 10 == 0) else "address"
        its = f"{RESULTS if uses else 'lists'}-{seed}-{number}"
        if kind == "program":
            # The environment's Python is a link to another's.
            read = {sys.prefix, sys.base_prefix, str(mutation.__file__).rsplit("/", 2)[0]}
            played = {"command": [sys.executable, __file__, its], "read": sorted(read)}
        else:
            played = {"url": f"http://127.0.0.1:{server.server_port}/{its}"}
        body = json.dumps({"server": played}).encode()
        headers = ["Content-Type: application/json", f"Authorization: Bearer {host.token}"]
        name = names[kind].get()
        try:
            answers = wire.ask(host.address, request("PUT", f"/tierbar/v1/mcp-servers/{name}", body, headers), False)
            well = bool(answers) and answers[-1].status == 200
            fault = fault_of(answers)
            if uses and not fault:
                fault = fault_of_use(its, kind, used(host, name)) if well else f"has no tools: {answers[-1].body!r}"
        except (wire.Hang, TimeoutError):
            fault, well = "hangs", False
        except (urllib.error.URLError, ConnectionError, ValueError) as error:
            fault, well = f"{error!r}", False
        finally:
            names[kind].put(name)
        return fault and f"{its}, {kind}: {fault}", well

    with ThreadPoolExecutor(AT_ONCE) as pool:
        outcomes = list(pool.map(one, range(count)))
    server.shutdown()
    server.server_close()
    return [fault for fault, _ in outcomes if fault], sum(well for _, well in outcomes)


def main():
    """Is such a server over stdin and stdout."""
    for line in sys.stdin:
        if (said := answer(sys.argv[1], json.loads(line))) is not None:
            sys.stdout.buffer.write(said + b"\n")
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()

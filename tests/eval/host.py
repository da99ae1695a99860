"""A host of its own for each model, and the requests to it."""

import http.server
import json
import os
import socket
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
TIERS = ["fast", "primary", "heavy"]
START_SECONDS, ANSWER_SECONDS = 60, 600


class Subject:
    """What is measured: a .gguf file, or a model of an OpenAI-compatible server."""

    def __init__(self, name, file=None, url=None, model=None):
        self.name, self.file, self.url, self.model = name, file, url, model

    def tier(self):
        if self.file:
            return f"model = {json.dumps(str(Path(self.file).resolve()))}\ncontext = 4096\n"
        return f"model = {json.dumps(self.model)}\ncontext = 4096\nengine = {{ endpoint = {json.dumps(self.url)} }}\n"


class Server:
    """What a running server at `self.url` is asked by."""

    def credentials(self):
        return {}

    def is_up(self):
        try:
            return urllib.request.urlopen(f"{self.url}/health", timeout=5).status == 200
        except OSError:
            return False

    def post(self, path, request):
        """The answer and its seconds; a refusal is an answer with an `error`."""
        headers = {"Content-Type": "application/json", **self.credentials()}
        asked = urllib.request.Request(self.url + path, json.dumps(request).encode(), headers)
        began = time.monotonic()
        try:
            answer = json.load(urllib.request.urlopen(asked, timeout=ANSWER_SECONDS))
        except urllib.error.HTTPError as refused:
            answer = json.load(refused)
        return answer, time.monotonic() - began


class Host(Server):
    """`tierbar serve` with the subject as all three tiers, while the block runs."""

    def __init__(self, tierbar, subject):
        self.tierbar, self.subject = tierbar, subject
        self.folder = tempfile.TemporaryDirectory(prefix="tierbar-eval-")

    def __enter__(self):
        Path(self.folder.name, "config.toml").write_text(self.config())
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.url = f"http://127.0.0.1:{free.getsockname()[1]}"
        environment = {**os.environ, "TIERBAR_HOME": self.folder.name, "TIERBAR_SECRETS": "file"}
        log = Path(self.folder.name, "eval.log")
        self.process = subprocess.Popen(
            [self.tierbar, "serve", "--listen", self.url.removeprefix("http://")],
            stdin=subprocess.DEVNULL, stdout=log.open("w"), stderr=subprocess.STDOUT, env=environment)
        deadline = time.monotonic() + START_SECONDS
        while not self.is_up():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"the host did not start: {log.read_text()[-2000:]}")
            time.sleep(0.05)
        self.token = Path(self.folder.name, "token").read_text().strip()
        return self

    def config(self):
        return "".join(f"[tiers.{name}]\n{self.subject.tier()}" for name in TIERS)

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.folder.cleanup()

    def credentials(self):
        return {"Authorization": f"Bearer {self.token}"}

    def get(self, path):
        asked = urllib.request.Request(self.url + path, headers=self.credentials())
        return json.load(urllib.request.urlopen(asked, timeout=ANSWER_SECONDS))


class NoModel(http.server.BaseHTTPRequestHandler):
    """A server whose answers nobody can use, so that only rules are left."""

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        choice = {"index": 0, "message": {"role": "assistant", "content": '{"no": "answer"}'}, "finish_reason": "stop"}
        body = json.dumps({"object": "chat.completion", "choices": [choice]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def no_model():
    """The subject of rules alone."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), NoModel)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return Subject("no model: rules alone", url=f"http://127.0.0.1:{server.server_port}", model="none")


def lines(name):
    return [json.loads(line) for line in (ROOT / "tests/eval" / name).read_text().splitlines()]


def share(part, whole):
    return f"{part} of {whole} ({part / whole:.0%})" if whole else "–"


def table(head, rows):
    return "\n".join([f"| {' | '.join(head)} |", "|---" * len(head) + "|", *(f"| {' | '.join(row)} |" for row in rows)])

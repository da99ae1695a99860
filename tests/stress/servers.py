"""The two servers, while a block runs: `tierbar serve`, and llama-server as a router of the same models."""

import http.client
import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

from peer import free_port
from watch import identity, pids, state

HANG_SECONDS = 300
# Of workers; the peer's get the same.
NICE = 5


class Server:
    """A process with an OpenAI-compatible API, in a control group if there is one."""

    def __init__(self, name, command, folder, group, environment):
        self.name, self.command, self.folder, self.group = name, command, Path(folder), group
        self.environment = {**os.environ, **environment}
        self.port = free_port()

    def __enter__(self):
        self.log = self.folder / f"{self.name}.log"
        with open(self.log, "w") as log:
            self.process = subprocess.Popen([*self.command, *self.listening()], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            preexec_fn=self.prepared, env=self.environment, start_new_session=True)
        try:
            self.wait_until_up()
        except BaseException:
            self.__exit__()
            raise
        return self

    def wait_until_up(self):
        until = time.monotonic() + HANG_SECONDS
        while not self.is_up():
            if self.process.poll() is not None or time.monotonic() > until:
                raise SystemExit(f"{self.name} does not start: {self.log.read_text()[-2000:]}")
            time.sleep(0.01)

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            print(f"{self.name} does not end on request")
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def prepared(self):
        if self.group:
            self.group.enter()

    def is_up(self):
        try:
            return self.ask("GET", "/health")[0] == 200
        except OSError:
            return False

    def connection(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=HANG_SECONDS)

    def ask(self, method, path, body=None, headers=()):
        connection = self.connection()
        body = None if body is None else json.dumps(body)
        connection.request(method, path, body, {"Content-Type": "application/json", **dict(headers)})
        response = connection.getresponse()
        text = response.read()
        connection.close()
        return response.status, text

    def first_token(self, model):
        """Seconds from the request to the first piece of its answer."""
        body = {"model": model, "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1, "temperature": 0, "stream": True}
        started, first = time.monotonic(), None
        connection = self.connection()
        connection.request("POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json"})
        response = connection.getresponse()
        text = b""
        for line in response:
            text += line
            if first is None and line.startswith(b"data: {"):
                choices = json.loads(line[6:]).get("choices") or [{}]
                if choices[0].get("delta", {}).get("content"):
                    first = time.monotonic()
        connection.close()
        if first is None or b"data: [DONE]" not in text:
            raise SystemExit(f"{self.name} does not answer as {model}: {response.status} {text[-500:]!r}")
        return first - started


class Tierbar(Server):
    def __init__(self, options, tiers, folder, group, environment=()):
        self.worker = options.worker
        folder = Path(folder)
        config = [f'[tiers.{name}]\nmodel = "{tier["model"]}"\ncontext = {tier["context"]}\nkv_cache = "{tier["kv_cache"]}"\n'
                  f"threads = {options.threads}\n" for name, tier in tiers.items()]
        (folder / "config.toml").write_text("[library]\nother_apps = false\n" + "".join(config))
        environment = {"TIERBAR_HOME": str(folder), "HOME": str(folder), "TIERBAR_SECRETS": "file",
                       "TIERBAR_SIMULATE_RAM": "16GiB", "NO_COLOR": "1", **dict(environment)}
        super().__init__("tierbar", [options.tierbar, "serve"], folder, group, environment)

    def listening(self):
        return ["--listen", f"127.0.0.1:{self.port}"]

    def admin(self, method, path, body=None):
        token = (self.folder / "token").read_text().strip()
        status, text = self.ask(method, f"/tierbar/v1{path}", body, {"Authorization": f"Bearer {token}"})
        return status, json.loads(text or b"null")

    def workers(self):
        """The ids of the workers that live."""
        program = identity(self.worker)
        return [int(pid) for pid in pids() if identity(f"/proc/{pid}/exe") == program and state(pid) not in (None, "Z", "X")]

    def unloaded(self):
        """The reasons for which workers were ended, from the log, and how often."""
        reasons = {}
        for why in re.findall(r'stopping tier=\S+ force=\S+ why="([^"]*)"', self.log.read_text()):
            why = re.sub(r"\d+(\.\d+)?", "…", re.sub(r"\b(fast|primary|heavy)\b", "…", why))
            reasons[why] = reasons.get(why, 0) + 1
        return reasons


class Router(Server):
    """llama-server with one model at a time."""

    def __init__(self, options, tiers, folder, group, more=()):
        preset = Path(folder, "models.ini")
        preset.write_text("version = 1\n" + "".join(f'[{name}]\nmodel = {tier["model"]}\nc = {tier["context"]}\n' for name, tier in tiers.items()))
        threads = str(options.threads)
        command = [options.peer, "--models-preset", str(preset), "--models-max", "1", "-t", threads, "-tb", threads, "-np", "2",
                   "--kv-unified", "--cache-ram", "0", "--no-webui", *options.peer_option, *more]
        super().__init__(" ".join(["llama-server", *more]), command, folder, group, {"HOME": str(folder), "LLAMA_CACHE": str(folder)})

    def listening(self):
        return ["--host", "127.0.0.1", "--port", str(self.port)]

    def prepared(self):
        super().prepared()
        # Our worker lowers its own priority.
        os.nice(NICE)


def memory(pid):
    """MiB of a process: its share of what it has in memory, and what is its own alone."""
    def kilobytes(name, key):
        return sum(int(line.split()[1]) for line in Path(f"/proc/{pid}/{name}").read_text().splitlines() if line.startswith(key))

    return {"pss": kilobytes("smaps_rollup", "Pss:") / 1024, "anonymous": kilobytes("status", "RssAnon:") / 1024}

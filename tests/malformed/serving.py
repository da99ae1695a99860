"""A `tierbar serve` with a configuration of its own, whose output is kept."""

import os
import pathlib
import subprocess
import sys
import tempfile
import time
import urllib.request

from corpus import CHAIN

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "clients"))

from host import ROOT, STARTER, program, serve  # noqa: E402, F401


def behind(url):
    """A configuration: the tier `fast` is the server there, and so is the one step of a chain."""
    chain = f'[chains.{CHAIN}]\nsteps = ["fast"]\nretries = 0\nwait = "5s"\nmark = true\n'
    return f'[tiers.fast]\nengine = {{ endpoint = "{url}" }}\n{chain}'


class Host:
    """Runs while the block does."""

    def __init__(self, config):
        self.folder = tempfile.TemporaryDirectory(prefix="tierbar-")
        self.home = pathlib.Path(self.folder.name)
        (self.home / "models").mkdir()
        models = pathlib.Path(os.environ.get("TIERBAR_TEST_MODELS", pathlib.Path.home() / ".cache/tierbar/models"))
        if (models / STARTER).exists():
            (self.home / "models" / STARTER).symlink_to(models / STARTER)
        (self.home / "config.toml").write_text(config)

    def __enter__(self):
        self.log = open(self.home / "stderr", "w+", errors="replace")
        self.process, ready = serve(self.home, self.log, TIERBAR_SECRETS="file")
        if not ready:
            self.__exit__()
            raise RuntimeError(f"the host did not start: {self.output()}")
        self.url = ready["url"]
        self.token = pathlib.Path(ready["token_file"]).read_text().strip()
        self.address = ("127.0.0.1", int(self.url.rsplit(":", 1)[1]))
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.log.close()
        self.folder.cleanup()

    def output(self):
        """Its stderr, and its log in the folder."""
        files = [self.home / "stderr", *self.home.glob("logs/*")]
        return "\n".join(path.read_text(errors="replace") for path in files if path.is_file())

    def is_well(self):
        if self.process.poll() is not None:
            return False
        with urllib.request.urlopen(f"{self.url}/health", timeout=30) as answer:
            return answer.status == 200

    def panics(self):
        return [line for line in self.output().splitlines() if "panicked" in line]

    def left_running(self):
        """Requests that still run after a while although their clients have gone."""
        deadline = time.monotonic() + 30
        while (running := self.running()) and time.monotonic() < deadline:
            time.sleep(0.05)
        return running

    def running(self):
        """Requests that hold a tier, or wait for one: the sum of the gauges."""
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=30) as answer:
            lines = answer.read().decode().splitlines()
        gauges = ("tierbar_requests_running{", "tierbar_requests_waiting{")
        return sum(int(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(gauges))

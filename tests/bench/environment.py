"""Python environments of benchmarks and checks, in ~/.cache/tierbar: each is installed once for each change of its lists."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

CACHE = Path.home() / ".cache/tierbar"
REQUIREMENTS = Path(__file__).resolve().parent / "requirements"


def get_environment(name, *lists, options=(), variables=None, key=""):
    """The folder venv-NAME with the packages of these lists, all of which have hashes. They are installed in turn, with pip's
    `options` and more variables of the environment, and again when a list, one of these or `key` is another."""
    folder = CACHE / f"venv-{name}"
    variables = variables or {}
    contents = [*(each.read_text() for each in lists), *options, repr(sorted(variables.items())), key]
    stamp, wanted = folder / ".packages", hashlib.sha256("\0".join(contents).encode()).hexdigest()
    if stamp.is_file() and stamp.read_text() == wanted:
        return folder
    print(f"Installing {', '.join(each.stem for each in lists)} into {folder}", file=sys.stderr, flush=True)
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
    pip = [str(folder / "bin/pip"), "install", "--quiet", "--disable-pip-version-check", "--require-hashes", *options]
    path = f"{folder / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    for each in lists:
        subprocess.run([*pip, "-r", str(each)], check=True, env={**os.environ, "PATH": path, **variables})
    stamp.write_text(wanted)
    return folder

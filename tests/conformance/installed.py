"""Installs what the clients need into ~/.cache/tierbar/conformance, once for each change of their lists."""

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
CACHE = Path.home() / ".cache/tierbar/conformance"


def is_done(stamp, key):
    return stamp.is_file() and stamp.read_text().strip() == key


def python(name):
    """The Python that has the packages of requirements/NAME.txt: some clients need older packages than others."""
    folder, lines = CACHE / name, HERE / f"requirements/{name}.txt"
    stamp, key = folder / ".packages", hashlib.sha256(lines.read_bytes()).hexdigest()
    if not is_done(stamp, key):
        print(f"Installing the packages of {name}", flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        pip = [str(folder / "bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "-r", str(lines)], check=True)
        stamp.write_text(key)
    return str(folder / "bin/python")


def node():
    """The folder of Node's scripts, with a link to their packages beside them, where Node looks."""
    folder, lock = CACHE / "node", HERE / "node/package-lock.json"
    stamp, key = folder / ".packages", hashlib.sha256(lock.read_bytes()).hexdigest()
    if not is_done(stamp, key):
        print("Installing the packages of node", flush=True)
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(HERE / "node" / name, folder)
        # Their scripts would download; each program comes in a package of its own.
        subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"], cwd=folder, check=True)
        stamp.write_text(key)
    link = HERE / "node/node_modules"
    if not link.exists():
        link.unlink(missing_ok=True)
        link.symlink_to(folder / "node_modules")
    return HERE / "node"

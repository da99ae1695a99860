"""Installs what the clients need into ~/.cache/tierbar/conformance, once for each change of their lists."""

import contextlib
import hashlib
import json
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
CACHE = Path.home() / ".cache/tierbar/conformance"
NPM = ["npm", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]


@contextlib.contextmanager
def fresh(name, *lists):
    """The folder `name` of the cache, and whether the block is to install into it, which it then does to its end or anew."""
    folder = CACHE / name
    stamp, key = folder / ".packages", hashlib.sha256(b"".join(each.read_bytes() for each in lists)).hexdigest()
    if stamp.is_file() and stamp.read_text().strip() == key:
        yield folder, False
        return
    began = time.monotonic()
    print(f"Installing {', '.join(named(lists[0]))} into {folder}", flush=True)
    folder.mkdir(parents=True, exist_ok=True)
    yield folder, True
    stamp.write_text(key)
    print(f"    done in {time.monotonic() - began:.0f} s", flush=True)


def named(packages):
    """The packages that a list is there for, without those that they need."""
    text = packages.read_text()
    if packages.suffix == ".json":
        return [f"{name} {version}" for name, version in json.loads(text)["dependencies"].items()]
    versions = dict(re.findall(r"^([\w.-]+)==([^\s;]+)", text, re.MULTILINE))
    wanted = [word.split("[")[0] for word in text.splitlines()[0].split(" from: ")[1].split()]
    return [f"{name} {versions[name]}" for name in wanted]


def python(name):
    """The Python that has the packages of requirements/NAME.txt: some clients need older packages than others."""
    packages = HERE / f"requirements/{name}.txt"
    with fresh(name, packages) as (folder, missing):
        program = str(folder / "bin/python")
        if missing:
            subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
            # The list has all of them. pip would look for `name[extra]` beside the `name` that is pinned.
            pip = [program, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes", "--no-deps"]
            subprocess.run([*pip, "-r", str(packages)], check=True)
    return program


def node():
    """The folder of Node's scripts, with a link to their packages beside them, where Node looks."""
    source = HERE / "node"
    lists = source / "package.json", source / "package-lock.json"
    with fresh("node", *lists) as (folder, missing):
        if missing:
            for path in lists:
                shutil.copy(path, folder)
            subprocess.run([*NPM, "ci"], cwd=folder, stdout=subprocess.DEVNULL, check=True)
    link = source / "node_modules"
    if not link.exists():
        link.unlink(missing_ok=True)
        link.symlink_to(folder / "node_modules")
    return source


def agents():
    """The folder of the agents' packages. Each is one program for each kind of machine, in a package of its own of the same
    version; a lock would have to name those of all kinds, and no registry needs to have them all."""
    packages = HERE / "agents.json"
    with fresh("agents", packages) as (folder, missing):
        if missing:
            shutil.rmtree(folder / "node_modules", ignore_errors=True)
            shutil.copy(packages, folder / "package.json")
            # Their scripts would download.
            subprocess.run([*NPM, "install", "--no-package-lock"], cwd=folder, stdout=subprocess.DEVNULL, check=True)
    return folder / "node_modules"

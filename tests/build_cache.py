"""Keeps the compiled crates of others between CI's fresh clones on one machine, in ~/.cache/tierbar/build.

Cargo decides what of it still fits: it compares what it would compile with what lies there. Our own crates are left out; their
sources are as new as the clone.
"""

import hashlib
import json
import shutil
import subprocess
from pathlib import Path

KEPT = Path.home() / ".cache/tierbar/build"
# Folders of one profile each: of the programs and tests, and of the check for macOS.
FOLDERS = ["target/release", "target-mac/debug", "target-mac/aarch64-apple-darwin/debug"]
# What Cargo does not compare (`bundle/env` writes the first two), and what would let files pile up.
KEY = ["target/.cpu", "target/.compiler", "Cargo.lock", "rust-toolchain.toml"]


def key(root):
    return hashlib.sha256(b"\0".join((root / name).read_bytes() for name in KEY)).hexdigest()[:16]


def copy(source, target):
    shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)


def restore(root):
    """Puts what is kept into a clone that has built nothing."""
    kept = KEPT / key(root)
    for folder in FOLDERS:
        if (kept / folder).is_dir() and not (root / folder / "deps").exists():
            copy(kept / folder, root / folder)


def keep(root):
    """Keeps what this clone has compiled of others, in place of what was kept before."""
    listed = subprocess.run(
        ["cargo", "metadata", "--no-deps", "--format-version", "1", "--locked"], cwd=root, check=True, capture_output=True
    ).stdout
    own = {package["name"] for package in json.loads(listed)["packages"]}
    making = KEPT / "making"
    shutil.rmtree(making, ignore_errors=True)
    for folder in FOLDERS:
        # A unit is one folder of fingerprints, NAME-HASH, whose hash ends the names of its files.
        units = [path for path in (root / folder).glob(".fingerprint/*") if path.name.rpartition("-")[0] not in own]
        hashes = {path.name.rpartition("-")[2] for path in units}
        built = [path for path in (root / folder).glob("build/*") if path.name.rpartition("-")[2] in hashes]
        files = [path for path in (root / folder).glob("deps/*") if path.name.partition(".")[0].rpartition("-")[2] in hashes]
        for path in [*units, *built, *files]:
            place = making / path.relative_to(root)
            if path.is_dir():
                # What CMake left of llama.cpp's compilation is large, and installed beside it.
                shutil.copytree(path, place, symlinks=True, ignore=shutil.ignore_patterns("*.o", "*.o.d"))
            else:
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, place)
    name = key(root)
    for path in KEPT.iterdir() if KEPT.exists() else []:
        if path != making:
            shutil.rmtree(path)
    if making.exists():
        making.rename(KEPT / name)

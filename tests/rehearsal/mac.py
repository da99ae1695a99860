"""A Mac to rehearse on: a PATH that has only what one with the Command Line Tools has, and a checkout in a folder with spaces.

Its bash is 3.2 and its make 3.81 where this machine has them: as its own, on a Mac, or in ~/.cache/tierbar/mac.
"""

import os
import pty
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).with_name("programs")
CACHE = Path.home() / ".cache/tierbar/mac"
PLAYED = "cargo codesign df ditto open pgrep pkill python3 rustc rustup security sleep sw_vers sysctl uname xcode-select"
# What each of macOS's tools refuses, as patterns of `case`, besides all long options. Other tools, such as timeout, are missing.
REFUSED = {
    "awk": "", "basename": "", "cat": "-*A*", "chmod": "", "cmp": "", "column": "", "cp": "-*[tTu]*", "cut": "",
    "date": "-*[dI]*|+*%N*", "dirname": "", "du": "-*b*", "env": "", "find": "-printf*|-regextype", "git": "", "grep": "-*[Pz]*",
    "head": "-n-*|-c-*", "id": "", "ln": "-*[rtT]*", "ls": "", "mkdir": "", "mktemp": "-*p*", "mv": "-*[tT]*", "readlink": "-*[emz]*",
    "realpath": "-*", "rm": "", "sed": r"-*[isz]*|*\\+*|*\\\?*|*\\\|*", "sh": "", "sort": "-*V*", "stat": "-*c*", "tail": "", "tee": "",
    "touch": "-*d*", "tr": "", "uniq": "", "wc": "", "xargs": "-a*|-d*",
}  # fmt: skip


def here(name):
    """This machine's tool; without it, the tests are skipped."""
    path = shutil.which(name)
    if path is None:
        raise unittest.SkipTest(f"{name} is missing")
    return Path(path)


def version(tool):
    """The first line of what the tool says of its version, which may be nothing."""
    return subprocess.run([tool, "--version"], capture_output=True, text=True).stdout.partition("\n")[0]


def find_tool(name, wanted):
    """The tool of macOS's version, or else this machine's; and whether it is macOS's."""
    for path in (CACHE / name, Path("/bin", name), Path("/usr/bin", name)):
        if path.exists() and wanted in version(path):
            return path, True
    return here(name), False


BASH, HAS_BASH = find_tool("bash", " 3.2")
MAKE, HAS_MAKE = find_tool("make", " 3.81")


class Run:
    """What a command printed, as a person sees it, its exit status, and the calls of played programs."""

    def __init__(self, status, text, calls):
        self.status = status
        self.text = re.sub(r"\x1b\[[0-9;]*m", "", text)
        self.calls = calls

    def first(self, beginning):
        """The place of the first call that begins so; -1 without one."""
        return next((at for at, call in enumerate(self.calls) if call.startswith(beginning)), -1)


class Mac:
    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="mac-"))
        self.home, self.checkout, self.path = (self.folder / name for name in ("home", "My Projects/tierbar", "bin"))
        for folder in (self.home / ".cargo/bin", self.checkout, self.path):
            folder.mkdir(parents=True)
        shutil.copy(PROGRAMS, self.folder / "programs")
        self.play(*PLAYED.split())
        for name in ("cargo", "rustc", "rustup"):
            (self.path / name).rename(self.home / ".cargo/bin" / name)
        for name, refused in REFUSED.items():
            self.wrap(name, f"--?*|{refused}" if refused else "--?*")
        (self.path / "bash").symlink_to(BASH)
        (self.path / "make").symlink_to(MAKE)
        self.write(self.path / "shasum", f'#!/bin/sh\nexec {shutil.which("sha256sum") or "/usr/bin/shasum -a 256"}\n')
        (self.folder / "toolchain").touch()
        for name in ("Makefile", "bundle", "docs/mac-checklist.md", "rust-toolchain.toml", "ui/package.json", "ui/package-lock.json"):
            (self.checkout / name).parent.mkdir(exist_ok=True)
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            copy(ROOT / name, self.checkout / name)

    def remove(self):
        shutil.rmtree(self.folder)

    def play(self, *names, folder=None):
        folder = folder or self.path
        folder.mkdir(exist_ok=True)
        for name in names:
            (folder / name).symlink_to(self.folder / "programs")

    @staticmethod
    def write(path, text):
        path.write_text(text)
        path.chmod(0o755)

    def wrap(self, name, refused):
        refusal = f'{refused}) echo "{name}: illegal option: $argument" >&2; exit 64 ;;'
        self.write(
            self.path / name,
            f'#!/bin/sh\nfor argument; do\n    case $argument in {refusal} esac\ndone\nexec {here(name)} "$@"\n',
        )

    def run(self, *command, path="", typed="", terminal=False, **variables):
        """Runs a command in the checkout. `path` is a folder in front of the others; what is typed comes from a terminal or not."""
        calls = self.folder / "calls"
        calls.write_text("")
        environment = {"HOME": self.home, "PATH": f"{path}:{self.path}" if path else self.path, "REHEARSAL": self.folder, **variables}
        keyboard, stdin = pty.openpty()
        os.write(keyboard, typed.encode())
        made = subprocess.run(
            command,
            cwd=self.checkout,
            env={key: str(value) for key, value in environment.items()},
            **({"stdin": stdin} if terminal else {"input": typed}),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
        )
        os.close(keyboard)
        os.close(stdin)
        return Run(made.returncode, made.stdout, calls.read_text().splitlines())

    def make(self, *targets, **variables):
        # The Makefile names /bin/bash, which is another one here.
        return self.run(self.path / "make", "--no-print-directory", f"SHELL={self.path / 'bash'}", *targets, **variables)

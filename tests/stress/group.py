"""A memory control group, version 1 or 2, and a swap file, created for one run."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

MIB = 1 << 20
GONE_SECONDS = 30


class NoGroup(Exception):
    """Why there is no group."""


class Group:
    """Limits the memory and swap, in bytes, of all processes started with `enter`."""

    def __init__(self, limit, swap=0):
        self.limit, self.swap = limit, swap
        mount, self.version = memory_controller()
        self.folder = mount / f"tierbar-stress-{os.getpid()}"
        try:
            self.folder.mkdir()
        except OSError as error:
            raise NoGroup(f"{self.folder} cannot be created: {error.strerror}") from None
        try:
            self.bound()
        except OSError as error:
            self.remove()
            raise NoGroup(f"its limits cannot be set: {error}") from None

    def bound(self):
        if self.version == 1:
            self.write("memory.limit_in_bytes", self.limit)
            # Memory and swap together. A kernel may keep no account of swap.
            if self.swap or (self.folder / "memory.memsw.limit_in_bytes").exists():
                self.write("memory.memsw.limit_in_bytes", self.limit + self.swap)
        else:
            self.write("memory.max", self.limit)
            if self.swap or (self.folder / "memory.swap.max").exists():
                self.write("memory.swap.max", self.swap)

    def write(self, name, value):
        (self.folder / name).write_text(str(value))

    def number(self, name):
        return int((self.folder / name).read_text())

    def field(self, name, key):
        for line in (self.folder / name).read_text().splitlines():
            if line.split()[0] == key:
                return int(line.split()[1])
        raise SystemExit(f"{self.folder / name} does not have {key}: a kernel older than 4.13?")

    def enter(self):
        """Called in a process that is about to be started."""
        (self.folder / "cgroup.procs").write_text("0")

    def has(self, pid):
        return str(pid) in (self.folder / "cgroup.procs").read_text().split()

    def oom_kills(self):
        return self.field("memory.oom_control" if self.version == 1 else "memory.events", "oom_kill")

    def used(self):
        return self.number("memory.usage_in_bytes" if self.version == 1 else "memory.current")

    def free(self):
        """Bytes until the limit, without what can be dropped."""
        keys = ("total_inactive_file", "total_active_file") if self.version == 1 else ("inactive_file", "active_file")
        return self.limit - self.used() + sum(self.field("memory.stat", key) for key in keys)

    def peak(self):
        name = "memory.max_usage_in_bytes" if self.version == 1 else "memory.peak"
        return self.number(name) if (self.folder / name).exists() else None

    def swapped(self):
        if self.version == 2:
            name = self.folder / "memory.swap.current"
            return int(name.read_text()) if name.exists() else 0
        both = self.folder / "memory.memsw.usage_in_bytes"
        return max(0, int(both.read_text()) - self.used()) if both.exists() else 0

    def remove(self):
        """Ends whatever is left in it."""
        until = time.monotonic() + GONE_SECONDS
        while self.folder.exists():
            for pid in (self.folder / "cgroup.procs").read_text().split():
                try:
                    os.kill(int(pid), signal.SIGKILL)
                except ProcessLookupError:
                    pass
            try:
                self.folder.rmdir()
            except OSError as error:
                if time.monotonic() > until:
                    print(f"{self.folder} is left behind: {error}")
                    return
                time.sleep(0.05)


def memory_controller():
    """The folder in which groups with a memory limit are made, and their version."""
    for line in Path("/proc/mounts").read_text().splitlines() if Path("/proc/mounts").exists() else []:
        _, mount, kind, options, *_ = line.split()
        if kind == "cgroup" and "memory" in options.split(","):
            return Path(mount), 1
        if kind == "cgroup2":
            control = Path(mount, "cgroup.subtree_control")
            if control.exists() and "memory" in control.read_text().split():
                return Path(mount), 2
    raise NoGroup("the kernel offers no memory controller here")


class SwapFile:
    """A swap file that is on while the block runs."""

    def __init__(self, path, size):
        self.path, self.size = Path(path), size

    def __enter__(self):
        try:
            with open(self.path, "wb") as file:
                os.fchmod(file.fileno(), 0o600)
                # On every file system, swap needs blocks that were written.
                for _ in range(self.size // (4 * MIB)):
                    file.write(bytes(4 * MIB))
                file.flush()
                os.fsync(file.fileno())
            self.do("mkswap", str(self.path))
            self.do("swapon", str(self.path))
        except BaseException as error:
            self.path.unlink(missing_ok=True)
            if isinstance(error, (OSError, subprocess.CalledProcessError)):
                raise NoGroup(f"no swap file can be made: {getattr(error, 'stderr', None) or error}") from None
            raise
        return self

    def __exit__(self, *_):
        try:
            self.do("swapoff", str(self.path))
        finally:
            self.path.unlink(missing_ok=True)

    @staticmethod
    def do(program, path):
        found = shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
        if not found:
            raise NoGroup(f"there is no {program} here")
        subprocess.run([found, path], check=True, capture_output=True, text=True)

"""Counts the living processes of one program every 10 ms, from outside: `watch.py PROGRAM [GROUP]`, until stdin ends.

Then it prints what it has seen. A process counts from its exec until it is a zombie or gone, so also while its memory is being
taken back. It is looked for among all processes of the machine, whatever its parent, and should be in the control
group at the folder GROUP.
"""

import json
import os
import select
import sys
import time

PERIOD = 0.01


def state(pid):
    """The kernel's letter for what it does; `None` once it is gone."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0]
    except (OSError, IndexError):
        return None


class Watch:
    def __init__(self, program, group):
        self.program, self.group = identity(program), group
        self.others = {pid for pid in pids() if identity(f"/proc/{pid}/exe") != self.program}
        self.living, self.seen, self.outside = set(), 0, 0
        self.most, self.together, self.without = 0, [], 0

    def look(self, now):
        present = pids()
        self.others &= present
        self.living = {pid for pid in self.living if state(pid) not in (None, "Z", "X")}
        # A process that was just forked is another program's until its exec.
        for pid in present - self.others - self.living:
            if identity(f"/proc/{pid}/exe") == self.program:
                self.living.add(pid)
                self.seen += 1
                self.outside += self.is_outside(pid)
        self.most = max(self.most, len(self.living))
        self.without += not self.living
        if len(self.living) > 1:
            self.together.append({"at": round(now, 3), "pids": sorted(self.living, key=int)})

    def is_outside(self, pid):
        if not self.group:
            return False
        with open(f"{self.group}/cgroup.procs") as file:
            # One that has ended meanwhile is in none.
            return pid not in file.read().split() and state(pid) not in (None, "Z", "X")


def pids():
    return {name for name in os.listdir("/proc") if name.isdigit()}


def identity(path):
    try:
        found = os.stat(path)
        return found.st_dev, found.st_ino
    except OSError:
        return None


def main():
    try:
        os.nice(-10)
    except OSError:
        pass  # Without the permission, its samples are late on a busy machine, which it reports.
    watch = Watch(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None)
    print("watching", flush=True)
    started = last = time.monotonic()
    gaps = []
    while not select.select([sys.stdin], [], [], max(0.0, last + PERIOD - time.monotonic()))[0]:
        now = time.monotonic()
        gaps.append(now - last)
        last = now
        watch.look(now - started)
    gaps = sorted(gaps) or [0.0]
    print(json.dumps({
        "samples": len(gaps), "seconds": last - started, "most_at_once": watch.most, "together": watch.together[:20],
        "processes": watch.seen, "outside_the_group": watch.outside, "samples_without_any": watch.without,
        "gap_ms": {"p50": gaps[len(gaps) // 2] * 1000, "p99": gaps[len(gaps) * 99 // 100] * 1000, "most": gaps[-1] * 1000},
    }))


if __name__ == "__main__":
    main()

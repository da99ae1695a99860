"""Takes so many bytes of memory, writes to all of them, says so, and holds them until its stdin ends."""

import mmap
import sys

size = int(sys.argv[1])
memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
for offset in range(0, size, mmap.PAGESIZE):
    memory[offset] = 1
print("held", flush=True)
sys.stdin.read()

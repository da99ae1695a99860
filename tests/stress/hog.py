"""Takes memory: for each line, a number of bytes, it writes to that many more, prints that, and holds all until stdin ends."""

import mmap
import sys

held = []
for line in sys.stdin:
    size = int(line)
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for offset in range(0, size, mmap.PAGESIZE):
        memory[offset] = 1
    held.append(memory)
    print("held", flush=True)

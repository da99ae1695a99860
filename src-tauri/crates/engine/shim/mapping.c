// Keeps llama.cpp from reading the whole of a mapped file ahead at its load, which is of no use when not all of it fits in
// memory. llama.cpp has no switch for that (llama-mmap.cpp: MAP_POPULATE, POSIX_MADV_WILLNEED), so the linker gives it
// these in place of the system's functions (`--wrap` in build.rs).

#define _GNU_SOURCE
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/types.h>

static _Thread_local bool lazy;

// For the calling thread, until it is called again.
void tierbar_map_lazily(bool on) {
    lazy = on;
}

void * __real_mmap(void * at, size_t length, int protection, int flags, int file, off_t offset);

void * __wrap_mmap(void * at, size_t length, int protection, int flags, int file, off_t offset) {
    return __real_mmap(at, length, protection, lazy ? flags & ~MAP_POPULATE : flags, file, offset);
}

int __real_posix_madvise(void * at, size_t length, int advice);

int __wrap_posix_madvise(void * at, size_t length, int advice) {
    return lazy && advice == POSIX_MADV_WILLNEED ? 0 : __real_posix_madvise(at, length, advice);
}

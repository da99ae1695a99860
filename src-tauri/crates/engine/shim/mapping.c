// Keeps llama.cpp from reading the whole of a mapped file ahead at its load, which is of no use when not all of it fits in
// memory. llama.cpp has no switch for that (llama-mmap.cpp: MAP_POPULATE, POSIX_MADV_WILLNEED), so it is linked with these in place
// of the system's functions: on Linux by `--wrap` (build.rs), on macOS by their names, which come before those of a library that is
// loaded at run time. There, POSIX_MADV_WILLNEED alone reads the file: since macOS 15.4, it faults every page in (vm_map_willneed).

#define _GNU_SOURCE
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/types.h>

static _Thread_local bool lazy;

// For the calling thread, until it is called again.
void tierbar_map_lazily(bool on) {
    lazy = on;
}

static bool is_left_out(int advice) {
    return lazy && advice == POSIX_MADV_WILLNEED;
}

#if defined(__APPLE__) || defined(TIERBAR_BY_NAME)

// As libSystem's, whose POSIX_MADV_… are MADV_…
int posix_madvise(void * at, size_t length, int advice) {
    if (is_left_out(advice)) {
        return 0;
    }
    return madvise(at, length, advice) == 0 ? 0 : errno;
}

#else

void * __real_mmap(void * at, size_t length, int protection, int flags, int file, off_t offset);

void * __wrap_mmap(void * at, size_t length, int protection, int flags, int file, off_t offset) {
    return __real_mmap(at, length, protection, lazy ? flags & ~MAP_POPULATE : flags, file, offset);
}

int __real_posix_madvise(void * at, size_t length, int advice);

int __wrap_posix_madvise(void * at, size_t length, int advice) {
    return is_left_out(advice) ? 0 : __real_posix_madvise(at, length, advice);
}

#endif

// Ends with 0 if the advice to read ahead is left out while lazy, and all other advice reaches the system.

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

void tierbar_map_lazily(bool on);

static int expect(const char * what, int found, int expected) {
    if (found != expected) {
        printf("%s: %d in place of %d\n", what, found, expected);
    }
    return found != expected;
}

int main(void) {
    size_t page = (size_t) sysconf(_SC_PAGESIZE);
    char * at = mmap(NULL, page, PROT_READ, MAP_PRIVATE | MAP_ANON, -1, 0);
    if (at == MAP_FAILED || munmap(at, page) != 0) {
        return 2;
    }
    // The system refuses advice about what is not mapped, so its answer says whether it was asked.
    int wrong = expect("will need", posix_madvise(at, page, POSIX_MADV_WILLNEED), ENOMEM);
    tierbar_map_lazily(true);
    wrong += expect("will need, lazily", posix_madvise(at, page, POSIX_MADV_WILLNEED), 0);
    wrong += expect("random, lazily", posix_madvise(at, page, POSIX_MADV_RANDOM), ENOMEM);
    tierbar_map_lazily(false);
    wrong += expect("will need again", posix_madvise(at, page, POSIX_MADV_WILLNEED), ENOMEM);
    return wrong;
}

#include "bounds.h"

#include <cstdlib>
#include <ctime>
#include <exception>
#include <new>

#ifdef __APPLE__
#include <malloc/malloc.h>
#else
#include <malloc.h>
#endif

namespace {

// The clock is read after so many bytes; an allocation counts as some more than its size.
constexpr int64_t BYTES_PER_CHECK = 64 << 10;
constexpr int64_t BYTES_PER_ALLOCATION = 64;
// The size of a value that is destroyed, and what destroying many may take beyond a bound.
constexpr std::size_t DESTROYED = 16;
constexpr bounds GRACE = {1000, 64 << 20, 128 << 10};

thread_local bounded_call * running = nullptr;

// A kind of what code that allocates expects anyway.
struct had_enough : std::bad_alloc {
    explicit had_enough(const char * what) : text(what) {}
    const char * what() const noexcept override { return text; }
    const char * text;
};

int64_t thread_nanoseconds() {
    timespec now = {};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

int64_t usable_size(void * memory) {
#ifdef __APPLE__
    return static_cast<int64_t>(malloc_size(memory));
#else
    return static_cast<int64_t>(malloc_usable_size(memory));
#endif
}

}  // namespace

bounded_call::bounded_call(const bounds & allowed, int64_t held)
    : allowed(allowed), bytes(held), started(thread_nanoseconds()),
      base(static_cast<const char *>(__builtin_frame_address(0))) {
    running = this;
}

bounded_call::~bounded_call() {
    end();
}

void bounded_call::end() {
    running = nullptr;
}

int64_t bounded_call::nanoseconds() const {
    return thread_nanoseconds() - started;
}

void bounded_call::before(std::size_t size) {
    const std::ptrdiff_t depth = base - static_cast<const char *>(__builtin_frame_address(0));
    unchecked += static_cast<int64_t>(size) + BYTES_PER_ALLOCATION;
    if (unchecked >= BYTES_PER_CHECK) {
        unchecked = 0;
        spent = nanoseconds();
    }
    if (over == nullptr) {
        over = excess(size, depth);
        if (over == nullptr) {
            return;
        }
        allowed.milliseconds += GRACE.milliseconds;
        allowed.bytes += GRACE.bytes;
        allowed.stack += GRACE.stack;
    }
    at_last = at_last || excess(size, depth) != nullptr;
    // What unwinds is served, so that it can clean up.
    if ((at_last || size % DESTROYED != 0) && std::uncaught_exceptions() == 0) {
        throw had_enough(over);
    }
}

const char * bounded_call::excess(std::size_t size, std::ptrdiff_t depth) const {
    if (depth > allowed.stack) {
        return "it is nested too deeply";
    }
    if (size > static_cast<std::size_t>(allowed.bytes) || bytes + static_cast<int64_t>(size) > allowed.bytes) {
        return "it takes too much memory";
    }
    return spent > allowed.milliseconds * 1000000 ? "it takes too long" : nullptr;
}

void * operator new(std::size_t size) {
    if (running != nullptr) {
        running->before(size);
    }
    void * memory = std::malloc(size == 0 ? 1 : size);
    if (memory == nullptr) {
        throw std::bad_alloc();
    }
    if (running != nullptr) {
        running->after(usable_size(memory));
    }
    return memory;
}

void operator delete(void * memory) noexcept {
    if (running != nullptr && memory != nullptr) {
        running->after(-usable_size(memory));
    }
    std::free(memory);
}

void operator delete(void * memory, std::size_t) noexcept {
    operator delete(memory);
}

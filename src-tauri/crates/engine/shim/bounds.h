// What a call into llama.cpp's C++ may take. Its Jinja interpreter, its parsers and its grammars have no bound of their own:
// a template may loop, a grammar may explode, and both may recurse until the stack ends.
//
// Nearly all of them allocate with each step, so that `operator new`, which a program may replace, is where a call is watched: one
// that has had enough computing, memory or stack gets an exception from it, and unwinds.
#pragma once

#include <cstddef>
#include <cstdint>

struct bounds {
    // Of computing, by the thread's own clock: a busy machine does not make a call fail.
    int64_t milliseconds;
    // Allocated and not freed.
    int64_t bytes;
    // Below the frame that makes the call.
    std::ptrdiff_t stack;
};

// A call of this thread, from here to the end of the scope. Calls do not nest.
class bounded_call {
  public:
    // `held`: what earlier calls have left allocated.
    explicit bounded_call(const bounds & allowed, int64_t held = 0);
    ~bounded_call();

    bounded_call(const bounded_call &) = delete;
    bounded_call & operator=(const bounded_call &) = delete;

    // Lets what follows in the scope allocate.
    void end();

    // What there was too much of, for a sentence that begins with "it"; NULL for nothing.
    const char * exceeded() const { return over; }
    int64_t held() const { return bytes; }
    int64_t nanoseconds() const;

    // For the allocator.
    void before(std::size_t size);
    void after(int64_t change) { bytes += change; }

  private:
    const char * excess(std::size_t size, std::ptrdiff_t depth) const;

    bounds allowed;
    int64_t bytes;
    int64_t started;
    // Of computing, as last looked at.
    int64_t spent = 0;
    int64_t unchecked = 0;
    const char * base;
    const char * over = nullptr;
    // Nothing is served any more, of any size.
    bool at_last = false;
};

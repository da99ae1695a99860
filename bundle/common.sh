# shellcheck shell=bash
# What the scripts beside this file share: where things lie, how they speak, which Node they use. Sourced, not run.
# Kept to bash 3.2, the one that macOS ships: with `set -e`, it goes on after a ( … ) that failed.
# shellcheck disable=SC2034  # used by the scripts that source this
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=$HOME/.cache/tierbar
venv=$cache/venv
os=$(uname -s)

say() { printf '\033[1m▸ %s\033[0m\n' "$*"; }
die() {
    printf '\033[31m%s\033[0m\n' "$*" >&2
    exit 1
}

# Runs what fetches. A connection that breaks costs another try, not the whole setup.
again() {
    local pause
    for pause in 5 30; do
        "$@" && return
        say "That failed, and is tried again in $pause s"
        sleep "$pause"
    done
    "$@"
}

sha256() { # of standard input
    if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi | cut -d' ' -f1
}

# What -march=native depends on, and hence what compiled code and compiler caches are good for.
cpu_key() {
    if [ "$os" = Darwin ]; then
        sysctl machdep.cpu hw.optional 2>/dev/null
    else
        grep -E '^(model name|flags|Features|CPU (implementer|part|variant))' /proc/cpuinfo | sort -u
    fi | sha256 | cut -c1-12
}

# What llama.cpp's build depends on besides its sources and the CPU. A compiler that is missing counts as another one.
compiler_key() {
    {
        cat "$root/bundle/compiler.cmake"
        # Unquoted: CC may be `ccache cc`.
        ${CC:-cc} --version 2>/dev/null || true
        ${CXX:-c++} --version 2>/dev/null || true
        echo "${CFLAGS:-}" "${CXXFLAGS:-}"
    } | sha256
}

# The versions that Vite runs on.
node_fits() {
    command -v node >/dev/null && command -v npm >/dev/null &&
        node -e 'const [a, b] = process.versions.node.split(".").map(Number);
                 process.exit((a === 20 && b >= 19) || (a === 22 && b >= 12) || a > 22 ? 0 : 1)'
}

# The versions that the tests run on; macOS's own is 3.9.
python_fits() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }
find_python() {
    local name
    for name in python3 python3.14 python3.13 python3.12 python3.11; do
        python_fits "$name" && echo "$name" && return
    done
    return 1
}

# Ends the app that runs, for `make run`: macOS would bring it to the front instead of starting another.
end_app() {
    pkill -TERM -x tierbar-app || return 0
    say "Ending the Tierbar that runs"
    for _ in {1..40}; do
        pgrep -x tierbar-app >/dev/null || return 0
        sleep 0.5
    done
    die "The Tierbar that runs does not end: quit it in its menu, then try again."
}

# First what setup has linked in the cache, because the system's is missing or too old.
PATH=$cache/bin:${CARGO_HOME:-$HOME/.cargo}/bin:$PATH
export PATH

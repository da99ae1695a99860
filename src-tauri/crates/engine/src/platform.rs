//! What differs between systems: what a thread has computed, how to return memory, and to end at once.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;

#[cfg(target_os = "linux")]
use linux as system;
#[cfg(target_os = "macos")]
use macos as system;

pub(crate) use system::ThreadClock;

/// Returns the number of compute threads: the configured number, or the fast cores for 0, and never all cores.
pub(crate) fn compute_threads(requested: u16) -> u16 {
    let available = std::thread::available_parallelism().map_or(1, usize::from);
    let wanted = match usize::from(requested) {
        0 => tierbar_telemetry::fast_cores().unwrap_or(available),
        requested => requested,
    };
    let threads = wanted.min(available.saturating_sub(1));
    u16::try_from(threads.max(1)).unwrap_or(1)
}

/// Has the system prefer other programs, so far as that many steps of `nice` do: on Linux for the calling thread and those
/// that it begins, on macOS for the process. A quality of service of macOS would also move the work to efficiency cores.
pub(crate) fn give_way(steps: u8) {
    // What keeps it from that, such as a limit, is no reason not to run.
    let _refused = rustix::process::nice(steps.into());
}

/// Loads something on this thread whose file llama.cpp maps, without reading the file ahead.
#[expect(unsafe_code, reason = "the shim")]
pub(crate) fn map_lazily<T>(load: impl FnOnce() -> T) -> T {
    unsafe extern "C" {
        fn tierbar_map_lazily(on: bool);
    }
    // SAFETY: sets a flag of this thread.
    unsafe { tierbar_map_lazily(true) }
    let loaded = load();
    // SAFETY: as above.
    unsafe { tierbar_map_lazily(false) }
    loaded
}

/// Gives the whole pages of a range back to the system. What they contain then is unknown, until it is written again.
///
/// # Safety
/// The range must be writable memory of this process that maps no file, and its contents must no longer be needed.
#[expect(unsafe_code, reason = "libc")]
pub(crate) unsafe fn release(range: *mut [u8]) {
    let page = rustix::param::page_size();
    let begin = range.cast::<u8>();
    let ahead = begin.align_offset(page).min(range.len());
    let bytes = (range.len() - ahead) / page * page;
    if bytes > 0 {
        // SAFETY: within the range, and as the caller says. What the system refuses stays as it is.
        unsafe { libc::madvise(begin.add(ahead).cast(), bytes, system::RELEASE) };
    }
}

/// Ends the process without running C++ destructors, which would pull llama.cpp's globals from under its threads.
#[expect(unsafe_code, reason = "libc")]
pub(crate) fn exit_now(status: i32) -> ! {
    // SAFETY: does not return and touches no memory of ours.
    unsafe { libc::_exit(status) }
}

#[cfg(test)]
mod tests {
    use std::{path::Path, process::Command};

    #[test]
    fn advice_to_read_ahead_is_left_out_with_both_linkages() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let folder = tempfile::tempdir().unwrap();
        // That of macOS works on Linux too, where a program's own function comes before a library's.
        let mut linkages = vec![("macos", "-DTIERBAR_BY_NAME")];
        if cfg!(target_os = "linux") {
            linkages.push(("linux", "-Wl,--wrap=mmap,--wrap=posix_madvise"));
        }
        for (system, flag) in linkages {
            let program = folder.path().join(system);
            let built = Command::new("cc")
                .args(["-Wall", "-Wextra", "-Werror", flag, "-o"])
                .arg(&program)
                .arg(here.join("shim/mapping.c"))
                .arg(here.join("tests/mapping/advice.c"))
                .output()
                .unwrap();
            let errors = String::from_utf8_lossy(&built.stderr);
            assert!(built.status.success(), "{system}: {errors}");
            let run = Command::new(program).output().unwrap();
            let said = String::from_utf8_lossy(&run.stdout);
            assert!(run.status.success(), "{system}: {said}");
        }
    }
}

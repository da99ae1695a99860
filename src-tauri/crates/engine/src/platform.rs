//! What differs between systems: which cores compute, and how to end at once.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;

#[cfg(target_os = "linux")]
use linux as system;
#[cfg(target_os = "macos")]
use macos as system;

/// Threads to compute with: what was asked for, as far as there are cores. For 0 the fast cores, and never all of them,
/// so that the desktop keeps one.
pub(crate) fn compute_threads(asked: u16) -> u16 {
    let available = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = match usize::from(asked) {
        0 => system::fast_cores()
            .unwrap_or(available)
            .min(available.saturating_sub(1)),
        asked => asked.min(available),
    };
    u16::try_from(threads.max(1)).unwrap_or(1)
}

/// Ends the process without running C++ destructors, which would pull llama.cpp's globals from under its threads.
#[expect(unsafe_code, reason = "libc")]
pub(crate) fn exit_now(status: i32) -> ! {
    // SAFETY: does not return and touches no memory of ours.
    unsafe { libc::_exit(status) }
}

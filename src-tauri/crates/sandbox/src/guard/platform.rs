//! Signals, and the end of adopted orphans, which only Linux has.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;

#[cfg(target_os = "linux")]
pub(crate) use linux::kill_adopted;
#[cfg(target_os = "macos")]
pub(crate) use macos::kill_adopted;

/// A background process ignores some signals, and would pass that on to a program that is to end by one of them.
#[expect(unsafe_code, reason = "libc")]
pub(crate) fn heed_signals() {
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGQUIT, libc::SIGHUP] {
        // SAFETY: the default takes no handler of ours.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

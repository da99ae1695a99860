//! macOS: times of threads from Mach.

#![expect(unsafe_code, reason = "libc")]

use std::time::Duration;

/// No longer counts the pages as the process's, and frees them when memory is needed. `MADV_DONTNEED` is only a hint here.
pub(super) const RELEASE: libc::c_int = libc::MADV_FREE_REUSABLE;

/// How long one thread has computed, as any thread can ask.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ThreadClock(libc::mach_port_t);

impl ThreadClock {
    pub(crate) fn of_this_thread() -> Self {
        // SAFETY: names the calling thread; the name is not ours to release.
        Self(unsafe { libc::pthread_mach_thread_np(libc::pthread_self()) })
    }

    /// Nothing once it has ended.
    pub(crate) fn spent(&self) -> Duration {
        // SAFETY: the struct is plain integers, for which all zeroes is a value.
        let mut info: libc::thread_basic_info = unsafe { std::mem::zeroed() };
        let mut count = libc::THREAD_BASIC_INFO_COUNT;
        let flavor = libc::THREAD_BASIC_INFO.unsigned_abs();
        // SAFETY: the call writes at most `count` integers, which is the struct's size, and refuses a name without a thread.
        let refused =
            unsafe { libc::thread_info(self.0, flavor, (&raw mut info).cast(), &raw mut count) };
        let of = |time: libc::time_value_t| {
            let seconds = Duration::from_secs(time.seconds.unsigned_abs().into());
            seconds + Duration::from_micros(time.microseconds.unsigned_abs().into())
        };
        if refused == 0 {
            of(info.user_time) + of(info.system_time)
        } else {
            Duration::ZERO
        }
    }
}

//! Exit statuses in plain words.

use rustix::process::Signal;
use std::{os::unix::process::ExitStatusExt, process::ExitStatus};

/// Such as `was killed by signal 9 (SIGKILL)` or `exited with code 3`.
pub(crate) fn describe_exit(status: ExitStatus) -> String {
    if let Some(code) = status.code() {
        return format!("exited with code {code}");
    }
    // Such as `signal: 6 (SIGABRT) (core dumped)`.
    let signal = status.to_string().replacen(':', "", 1);
    format!(
        "was killed by {}",
        signal.trim_end_matches(" (core dumped)")
    )
}

/// Returns whether it ended by itself, so that its last output says why. A signal from outside, or of a fault in the middle of its work,
/// leaves it no time to write: what it wrote last is about something else.
pub(crate) fn ended_itself(status: ExitStatus) -> bool {
    status
        .signal()
        .is_none_or(|signal| signal == Signal::ABORT.as_raw())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exit_is_described_by_signal_or_code() {
        let aborted = ExitStatus::from_raw(6 | 0x80);
        assert_eq!(describe_exit(aborted), "was killed by signal 6 (SIGABRT)");
        let killed = ExitStatus::from_raw(9);
        assert_eq!(describe_exit(killed), "was killed by signal 9 (SIGKILL)");
        let code = ExitStatus::from_raw(3 << 8);
        assert_eq!(describe_exit(code), "exited with code 3");
        let itself = [3 << 8, 6, 7, 9, 11].map(|raw| ended_itself(ExitStatus::from_raw(raw)));
        assert_eq!(itself, [true, true, false, false, false]);
    }
}

//! Exit statuses in plain words.

use rustix::process::Signal;
use std::{os::unix::process::ExitStatusExt, process::ExitStatus};

/// Such as `was killed by signal 9 (SIGKILL)` or `exited with code 3`.
pub(crate) fn describe_exit(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => match signal_name(signal) {
            Some(name) => format!("was killed by signal {signal} ({name})"),
            None => format!("was killed by signal {signal}"),
        },
        (None, Some(code)) => format!("exited with code {code}"),
        (None, None) => "ended in an unknown way".to_owned(),
    }
}

/// Returns whether it ended by itself, so that its last output says why. A signal from outside, or of a fault in the middle of its work,
/// leaves it no time to write: what it wrote last is about something else.
pub(crate) fn ended_itself(status: ExitStatus) -> bool {
    status
        .signal()
        .is_none_or(|signal| signal == Signal::ABORT.as_raw())
}

fn signal_name(signal: i32) -> Option<&'static str> {
    // The numbers differ between systems; the constants do not.
    let names = [
        (Signal::HUP, "SIGHUP"),
        (Signal::INT, "SIGINT"),
        (Signal::QUIT, "SIGQUIT"),
        (Signal::ILL, "SIGILL"),
        (Signal::TRAP, "SIGTRAP"),
        (Signal::ABORT, "SIGABRT"),
        (Signal::BUS, "SIGBUS"),
        (Signal::FPE, "SIGFPE"),
        (Signal::KILL, "SIGKILL"),
        (Signal::SEGV, "SIGSEGV"),
        (Signal::PIPE, "SIGPIPE"),
        (Signal::TERM, "SIGTERM"),
        (Signal::XCPU, "SIGXCPU"),
        (Signal::SYS, "SIGSYS"),
    ];
    let named = names
        .into_iter()
        .find(|(known, _)| known.as_raw() == signal);
    named.map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exit_is_described_by_signal_or_code() {
        let killed = ExitStatus::from_raw(9);
        assert_eq!(describe_exit(killed), "was killed by signal 9 (SIGKILL)");
        let code = ExitStatus::from_raw(3 << 8);
        assert_eq!(describe_exit(code), "exited with code 3");
        let itself = [3 << 8, 6, 7, 9, 11].map(|raw| ended_itself(ExitStatus::from_raw(raw)));
        assert_eq!(itself, [true, true, false, false, false]);
    }
}

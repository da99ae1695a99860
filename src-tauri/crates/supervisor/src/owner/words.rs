//! What the policy decided, in the words that users read.

use tierbar_core::{
    Code, Error, TierId,
    policy::{ALARM_PATIENCE, Alarm, Refusal, Why},
};

pub(super) const CHANGED: &str = "ended because its configuration has changed";

/// Why a tier was ended.
pub(super) fn ended(why: &Why) -> String {
    match why {
        Why::Wished => "stopped".to_owned(),
        Why::RoomFor(next) => format!("ended to make room for {next}"),
        Why::Budget => "ended because the memory budget was lowered".to_owned(),
        Why::Idle(idle) => {
            let seconds = idle.as_secs();
            match seconds / 60 {
                0 => format!("ended after {seconds} s without a request"),
                minutes => format!("ended after {minutes} min without a request"),
            }
        }
        Why::Alarm(Alarm::Critical) => {
            "ended although it was in use, because memory was about to run out".to_owned()
        }
        Why::Alarm(_) => "ended because memory was short".to_owned(),
    }
}

/// Why a request cannot have the tier.
pub(super) fn refused(tier: &TierId, why: &Refusal) -> Error {
    match why {
        Refusal::Pinned(by) => {
            let by: Vec<_> = by.iter().map(TierId::as_str).collect();
            let by = by.join(" and ");
            let what = format!("{tier} does not fit into memory beside {by}, which is pinned");
            Error::new(Code::OverBudget, what).hint(format!("unpin {by}, or send this to {by}"))
        }
        Refusal::Alarm(_) => {
            let seconds = ALARM_PATIENCE.as_secs();
            let what = format!(
                "the machine has been short of memory for {seconds} s, and {tier} was not loaded"
            );
            Error::new(Code::Overloaded, what)
                .hint("close a program that uses much memory, and try again")
        }
    }
}

//! What the policy decided, in the words that users read.

use tierbar_core::{
    Code, Error, TierId,
    policy::{ALARM_PATIENCE, Refusal, Why},
};

pub(super) const CHANGED: &str = "ended because its configuration has changed";

/// Why a tier was ended; `used`: although it was.
pub(super) fn ended(why: &Why, used: bool) -> String {
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
        Why::Alarm(_) if used => {
            "ended although it was in use, because memory was about to run out".to_owned()
        }
        Why::Alarm(_) => "ended because memory was short".to_owned(),
    }
}

/// Why a request cannot have the tier.
pub(super) fn refused(tier: &TierId, why: &Refusal) -> Error {
    match why {
        Refusal::Pinned(by) => {
            let names: Vec<_> = by.iter().map(TierId::as_str).collect();
            let (names, are) = (
                names.join(" and "),
                if by.len() == 1 { "is" } else { "are" },
            );
            let what =
                format!("{tier} does not fit into memory beside {names}, which {are} pinned");
            Error::new(Code::OverBudget, what).hint(format!("unpin {names}, or use what is loaded"))
        }
        Refusal::Alarm(_) => {
            let seconds = ALARM_PATIENCE.as_secs();
            let what = format!(
                "the machine has been short of memory for {seconds} s, and {tier} took no requests"
            );
            Error::new(Code::Overloaded, what)
                .hint("close a program that uses much memory, and try again")
        }
    }
}

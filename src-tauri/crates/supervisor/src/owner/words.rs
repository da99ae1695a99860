//! What the policy decided, in the words that users read.

use tierbar_core::{
    Code, Error, TierId,
    policy::{ALARM_PATIENCE, Refusal, Why},
};

pub(super) const CHANGED: &str = "ended because its configuration has changed";

/// What the guard has said of the machine, with its figures.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) alarm: String,
    pub(super) stance: String,
}

/// Why a tier was ended; `used`: although it was.
pub(super) fn ended(why: &Why, used: bool, told: &Told) -> String {
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
        Why::Alarm(_) if used => format!("ended although it was in use: {}", told.alarm),
        Why::Alarm(_) => format!("ended: {}", told.alarm),
        Why::Stance(_) => format!("ended: {}", told.stance),
    }
}

/// Why a request cannot have the tier.
pub(super) fn refused(tier: &TierId, why: &Refusal, told: &Told) -> Error {
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
                "the machine has been short of memory for {seconds} s, and {tier} took no requests ({})",
                told.alarm
            );
            Error::new(Code::Overloaded, what)
                .hint("close a program that uses much memory, and try again")
        }
        Refusal::Paused => Error::new(Code::Paused, told.stance.clone())
            .hint("resume in the menu bar, in the window, or with `tierbar resume`"),
    }
}

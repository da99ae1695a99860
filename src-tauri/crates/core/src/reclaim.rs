//! Whether the memory of an ended worker is back, from figures before and after.
//!
//! Once a process is gone, its own memory is back; on Linux this is so as soon as its parent is notified. What remains are
//! processes that it started, and memory that a driver frees later. So the figure of the whole machine must fall as well,
//! by about what the processes held. Other programs change that figure too: a part may be missing, and the next load waits
//! for it only if its plan does not fit the available memory, and at most for [`PATIENCE`].

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How long a load waits for the memory of the previous tier.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// How long after a worker's end missing memory counts as the worker's, and not as another program's.
pub const MEMORY: Duration = Duration::from_secs(60);
/// Other programs may take this much while a worker ends.
const SLACK: u64 = 256 << 20;

/// The figures just before a worker was ended. `None` is unknown, such as after a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemoryBefore {
    /// What its processes held in memory and swap, without mapped files.
    pub group_bytes: Option<u64>,
    /// What all programs and the system held, in the same sense.
    pub machine_bytes: Option<u64>,
}

/// The same, after its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemoryAfter {
    /// 0 once all its processes are gone.
    pub group_bytes: Option<u64>,
    pub machine_bytes: Option<u64>,
    /// What can be had without swapping.
    pub available_bytes: Option<u64>,
}

/// Memory of an ended tier that is not back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingMemory {
    /// What is not back.
    pub bytes: u64,
    /// Available memory; 0 if unknown.
    pub available_bytes: u64,
    /// Whether processes of the tier are still alive.
    pub held: bool,
}

/// Returns what is not back; `None` if all is.
pub fn missing(before: &MemoryBefore, after: &MemoryAfter) -> Option<MissingMemory> {
    let expected = before.group_bytes.unwrap_or(0);
    let (bytes, held) = match after.group_bytes {
        Some(0) => (not_fallen(expected, before, after)?, false),
        Some(left) => (left, true),
        None => (expected, true),
    };
    Some(MissingMemory {
        bytes,
        available_bytes: after.available_bytes.unwrap_or(0),
        held,
    })
}

/// Returns by how much less the machine's figure has fallen than expected. Without that figure, only the end of the
/// processes counts.
fn not_fallen(expected: u64, before: &MemoryBefore, after: &MemoryAfter) -> Option<u64> {
    let (was, is) = (before.machine_bytes?, after.machine_bytes?);
    let bytes = expected.saturating_sub(was.saturating_sub(is));
    (bytes > SLACK.max(expected / 8)).then_some(bytes)
}

impl MissingMemory {
    /// Returns whether to stop waiting, given the next plan's bytes, if any.
    pub fn is_given_up(&self, waited: Duration, plan_bytes: Option<u64>) -> bool {
        let fits = plan_bytes.is_some_and(|plan| self.allows(plan));
        waited >= PATIENCE || (fits && !self.held)
    }

    /// Returns whether a plan fits although this memory is missing.
    pub fn allows(&self, plan_bytes: u64) -> bool {
        plan_bytes <= self.available_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;
    const BEFORE: MemoryBefore = MemoryBefore {
        group_bytes: Some(8 * GIB),
        machine_bytes: Some(12 * GIB),
    };

    fn after(group: u64, machine: u64) -> MemoryAfter {
        MemoryAfter {
            group_bytes: Some(group),
            machine_bytes: Some(machine),
            available_bytes: Some(3 * GIB),
        }
    }

    fn bytes(before: &MemoryBefore, after: &MemoryAfter) -> Option<u64> {
        missing(before, after).map(|missing| missing.bytes)
    }

    #[test]
    fn memory_is_back_once_processes_and_use_are_gone() {
        assert_eq!(bytes(&BEFORE, &after(0, 4 * GIB)), None);
        // A process is alive, whatever the machine's figure.
        assert_eq!(bytes(&BEFORE, &after(2 * GIB, 4 * GIB)), Some(2 * GIB));
        // No process holds it, and it is not back: most likely a driver's.
        assert_eq!(bytes(&BEFORE, &after(0, 9 * GIB)), Some(5 * GIB));
        assert_eq!(bytes(&BEFORE, &after(0, 20 * GIB)), Some(8 * GIB));
    }

    #[test]
    fn other_programs_may_take_a_little_memory() {
        assert_eq!(bytes(&BEFORE, &after(0, 5 * GIB)), None);
        assert_eq!(
            bytes(&BEFORE, &after(0, 5 * GIB + 1)),
            Some(GIB + 1),
            "more than an eighth"
        );
        let small = MemoryBefore {
            group_bytes: Some(SLACK),
            machine_bytes: Some(GIB),
        };
        assert_eq!(bytes(&small, &after(0, 2 * GIB)), None);
    }

    #[test]
    fn an_unknown_process_counts_as_alive() {
        let unlisted = MemoryAfter {
            group_bytes: None,
            ..after(0, 0)
        };
        assert_eq!(bytes(&BEFORE, &unlisted), Some(8 * GIB));
        assert!(missing(&MemoryBefore::default(), &unlisted).is_some_and(|missing| missing.held));
        let unread = MemoryAfter {
            machine_bytes: None,
            ..after(0, 0)
        };
        assert_eq!(bytes(&BEFORE, &unread), None);
        assert_eq!(bytes(&MemoryBefore::default(), &after(0, GIB)), None);
    }

    #[test]
    fn the_wait_is_bounded_and_only_for_needed_memory() {
        let missing = missing(&BEFORE, &after(0, 9 * GIB)).unwrap();
        let soon = Duration::from_secs(9);
        assert!(!missing.is_given_up(soon, None));
        assert!(!missing.is_given_up(soon, Some(3 * GIB + 1)));
        assert!(missing.is_given_up(soon, Some(3 * GIB)));
        assert!(missing.is_given_up(PATIENCE, None));
        let held = MissingMemory {
            held: true,
            ..missing
        };
        assert!(
            !held.is_given_up(soon, Some(GIB)),
            "a process of the tier lives"
        );
        assert!(held.is_given_up(PATIENCE, None));
    }
}

//! Pressure stall information: how long tasks wait for memory.

use tierbar_core::status::Pressure;

/// The percentage of time in which some task waits for memory.
pub(super) const WARNING_PERCENT: u64 = 10;
pub(super) const CRITICAL_PERCENT: u64 = 40;

/// The machine's.
pub(super) const MACHINE: &str = "/proc/pressure/memory";

/// Grades a file such as `/proc/pressure/memory` by the last ten seconds.
pub(super) fn grade_stalls(text: &str) -> Option<Pressure> {
    let percent = some_avg10(text)?;
    Some(if percent >= CRITICAL_PERCENT as f64 {
        Pressure::Critical
    } else if percent >= WARNING_PERCENT as f64 {
        Pressure::Warning
    } else {
        Pressure::Normal
    })
}

/// `some avg10=0.00 avg60=0.00 avg300=0.00 total=0`
fn some_avg10(text: &str) -> Option<f64> {
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    some.split_whitespace()
        .find_map(|field| field.strip_prefix("avg10="))?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn psi_is_graded_by_its_ten_second_mean() {
        let level = |avg10| {
            grade_stalls(&format!(
                "some avg10={avg10} avg60=99.00 avg300=99.00 total=7\nfull avg10=99.00 total=7\n"
            ))
        };
        assert_eq!(level("0.00"), Some(Pressure::Normal));
        assert_eq!(level("12.50"), Some(Pressure::Warning));
        assert_eq!(level("55.01"), Some(Pressure::Critical));
        assert_eq!(level("?"), None);
        assert_eq!(grade_stalls(""), None);
    }
}

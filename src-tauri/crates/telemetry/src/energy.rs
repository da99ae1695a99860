//! The energy that the processors have used, where the system tells.

use crate::platform;
use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};
use tierbar_core::ledger::EnergyCounter;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PackageCounter {
    pub(crate) name: String,
    pub(crate) microjoules: u64,
    /// Where it begins anew.
    pub(crate) range: u64,
}

/// Adds up what the counters have counted since the first reading.
#[derive(Debug, Default)]
pub struct EnergyMeter(Mutex<EnergyTotal>);

#[derive(Debug, Default)]
struct EnergyTotal {
    last: BTreeMap<String, u64>,
    microjoules: u64,
}

impl EnergyCounter for EnergyMeter {
    fn millijoules(&self) -> Option<u64> {
        let packages = platform::energy();
        if packages.is_empty() {
            return None;
        }
        let mut total = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Some(total.add(packages) / 1000)
    }
}

impl EnergyTotal {
    /// Returns the microjoules after a reading. A counter may have begun anew once since the last.
    fn add(&mut self, packages: Vec<PackageCounter>) -> u64 {
        for package in packages {
            let now = package.microjoules;
            let last = self.last.insert(package.name, now).unwrap_or(now);
            let passed = match now.checked_sub(last) {
                Some(passed) => passed,
                None => package.range.saturating_sub(last).saturating_add(now),
            };
            self.microjoules = self.microjoules.saturating_add(passed);
        }
        self.microjoules
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_summed_and_may_begin_anew() {
        let package = |name: &str, microjoules| PackageCounter {
            name: name.to_owned(),
            microjoules,
            range: 1000,
        };
        let mut total = EnergyTotal::default();
        assert_eq!(total.add(vec![package("a", 500), package("b", 900)]), 0);
        assert_eq!(total.add(vec![package("a", 600), package("b", 950)]), 150);
        // 50 up to the range and 20 from 0 on.
        assert_eq!(total.add(vec![package("a", 600), package("b", 20)]), 220);
    }
}

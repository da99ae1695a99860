//! RAM and swap as one reading.

use crate::{growth::Growth, platform, simulate::simulated_ram};
use std::time::Instant;
use sysinfo::{MemoryRefreshKind, System};
use tierbar_core::status::{Pressure, Ram, Swap};

/// Below this share of RAM left without swapping, work begins to stall.
const WARNING_SHARE: u64 = 10;
/// Below this, the system may freeze or end processes.
const CRITICAL_SHARE: u64 = 4;

/// What the machine's memory is doing at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reading {
    pub ram: Ram,
    pub swap: Swap,
}

/// Takes readings, and remembers a minute of them for swap's growth. One owner.
#[derive(Debug)]
pub struct Sampler {
    system: Option<System>,
    simulated: Option<u64>,
    swap: Growth,
}

impl Sampler {
    /// A wrong `TIERBAR_SIMULATE_RAM` counts as none and is logged; [`simulated_ram`] tells it at start.
    #[must_use]
    pub fn new() -> Self {
        let simulated = simulated_ram().unwrap_or_else(|error| {
            tracing::warn!("{error}; using the real machine's RAM");
            None
        });
        Self::with(simulated)
    }

    fn with(simulated: Option<u64>) -> Self {
        // It fails only on systems that sysinfo does not know; ours are two that it does.
        Self {
            system: System::new().ok(),
            simulated,
            swap: Growth::default(),
        }
    }

    pub fn sample(&mut self) -> Reading {
        let (machine, used_bytes) = self.system.as_mut().map(read).unwrap_or_default();
        Reading {
            ram: as_planned(platform::within_limits(machine), self.simulated),
            swap: Swap {
                used_bytes,
                growth_bytes_per_minute: self.swap.record(Instant::now(), used_bytes),
            },
        }
    }
}

impl Default for Sampler {
    fn default() -> Self {
        Self::new()
    }
}

fn read(system: &mut System) -> (Ram, u64) {
    system.refresh_memory_specifics(MemoryRefreshKind::nothing().with_ram().with_swap());
    let ram = Ram {
        total_bytes: system.total_memory(),
        // Not `available_memory()`: on macOS that counts programs' active pages, which only swapping would free.
        available_bytes: system.total_memory().saturating_sub(system.used_memory()),
        pressure: platform::pressure(),
    };
    (ram, system.used_swap())
}

/// RAM that models are planned against, in bytes: the simulated amount, else the machine's or its container's.
#[must_use]
pub fn machine_ram() -> u64 {
    Sampler::new().sample().ram.total_bytes
}

/// The reading as if the machine had the simulated RAM and the same bytes in use.
fn as_planned(machine: Ram, simulated: Option<u64>) -> Ram {
    let mut ram = machine;
    if let Some(total) = simulated {
        let used = machine.total_bytes.saturating_sub(machine.available_bytes);
        ram.total_bytes = total;
        ram.available_bytes = total.saturating_sub(used);
    }
    // A kernel that grades its own pressure has counted what is available. It cannot for a simulated machine.
    if simulated.is_some() || !platform::PRESSURE_COUNTS_AVAILABLE {
        ram.pressure = ram
            .pressure
            .max(by_share(ram.available_bytes, ram.total_bytes));
    }
    ram
}

fn by_share(available: u64, total: u64) -> Pressure {
    let below = |percent: u64| available < total / 100 * percent;
    if below(CRITICAL_SHARE) {
        Pressure::Critical
    } else if below(WARNING_SHARE) {
        Pressure::Warning
    } else {
        Pressure::Normal
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn machine(total: u64, available: u64) -> Ram {
        Ram {
            total_bytes: total,
            available_bytes: available,
            pressure: Pressure::Normal,
        }
    }

    #[test]
    fn a_reading_of_this_machine_is_plausible() {
        let reading = Sampler::with(None).sample();
        assert!(reading.ram.total_bytes > 100 << 20, "{reading:?}");
        assert!(reading.ram.available_bytes > 0, "{reading:?}");
        assert!(
            reading.ram.available_bytes <= reading.ram.total_bytes,
            "{reading:?}"
        );
        assert_eq!(reading.swap.growth_bytes_per_minute, 0, "{reading:?}");
    }

    #[test]
    fn a_simulated_machine_has_its_total_and_the_real_use() {
        let ram = as_planned(machine(64 * GIB, 60 * GIB), Some(16 * GIB));
        assert_eq!(ram, machine(16 * GIB, 12 * GIB));
        let ram = as_planned(machine(8 * GIB, 7 * GIB), Some(16 * GIB));
        assert_eq!(ram, machine(16 * GIB, 15 * GIB));
    }

    #[test]
    fn a_simulated_machine_smaller_than_what_is_used_has_nothing_left() {
        let ram = as_planned(machine(64 * GIB, 8 * GIB), Some(16 * GIB));
        assert_eq!(
            (ram.total_bytes, ram.available_bytes, ram.pressure),
            (16 * GIB, 0, Pressure::Critical)
        );
    }

    #[test]
    fn the_simulation_reaches_a_whole_reading() {
        assert_eq!(
            Sampler::with(Some(16 * GIB)).sample().ram.total_bytes,
            16 * GIB
        );
    }

    #[test]
    fn pressure_rises_as_the_share_of_available_memory_falls() {
        let by = |percent| by_share(percent * GIB, 100 * GIB);
        assert_eq!(by(50), Pressure::Normal);
        assert_eq!(by(10), Pressure::Normal);
        assert_eq!(by(9), Pressure::Warning);
        assert_eq!(by(4), Pressure::Warning);
        assert_eq!(by(3), Pressure::Critical);
        assert_eq!(by(0), Pressure::Critical);
    }
}

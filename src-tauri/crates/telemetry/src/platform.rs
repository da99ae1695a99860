//! What only the operating system can tell or do: its clocks, memory, cores, disks, heat and power, single processes,
//! announcements of pressure, the GPU's share, reading past the page cache.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;

#[cfg(target_os = "linux")]
use linux as os;
#[cfg(target_os = "macos")]
use macos as os;

pub(crate) use os::{
    Announced, PRESSURE_COUNTS_AVAILABLE, clocks, full_screen, held, memory_is_back, of_group,
    open_uncached, power, read, started, thermal, usage, working_set,
};

/// Bytes that the process's end would give back; `None` if there is no such process or it is not ours to read.
///
/// Linux: the proportional share of its anonymous and shared memory, and its swap. Clean page cache, such as
/// mapped weights, is not part of it. macOS: `ri_phys_footprint`, the figure of Activity Monitor.
#[must_use]
pub fn footprint(pid: u32) -> Option<u64> {
    os::footprint(pid)
}

/// What the machine's memory is taken by, at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MachineMemory {
    /// By all programs and the system, in memory and in swap, of what cannot simply be dropped: it falls as soon as a
    /// program's memory is back. Within a control group's limit: by that group.
    pub held_bytes: Option<u64>,
    /// What can be had without swapping. On Linux it may rise seconds after memory was given back.
    pub available_bytes: Option<u64>,
}

/// Whatever readings are scripted: what this is asked about is real.
#[must_use]
pub fn machine_memory() -> MachineMemory {
    MachineMemory {
        held_bytes: os::held_by_all(),
        available_bytes: os::read().ram_available_bytes,
    }
}

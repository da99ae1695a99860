//! Readings of the machine, its bandwidths, and the memory of single processes.
//!
//! It decides nothing, and changes nothing but with [`return_memory`]. A [`Sampler`] belongs to one task, which calls [`Sampler::sample`] at its own pace;
//! [`pressure_changes`] reports what cannot wait for the next reading. [`footprint`] has the kernel walk the process's
//! pages, on a Linux virtual machine 20 ms for 2 GiB of anonymous memory: call it from a blocking context.
//!
//! Memory, swap, cores and disks are read from the system itself: `sysinfo` silently keeps the previous figures when a read
//! fails, and is used only for the processor's name.

pub mod bandwidth;
mod disks;
mod energy;
mod figures;
mod growth;
mod hardware;
mod judge;
mod platform;
mod process;
mod recent;
mod sampler;
mod script;
mod simulate;

pub use disks::DiskUse;
pub use energy::EnergyMeter;
pub use hardware::{Hardware, fast_cores, hardware};
pub use platform::{
    MEMORY_INTERVAL, MachineMemory, PressureListener, cpu_ms, footprint, machine_memory, oom_kills,
    return_memory,
};
pub use process::{Process, held_by, members_of_group};
pub use recent::{RECENT_MINUTES, RecentReadings};
pub use sampler::{Sampler, pressure_changes};
pub use script::{SCRIPTED_READINGS, scripted_readings};
pub use simulate::{
    SIMULATE_METAL, SIMULATE_RAM, parse_size, simulated_ram, simulated_working_set, working_set,
};

/// Returns how long the machine has slept since the system started.
pub fn asleep() -> std::time::Duration {
    std::time::Duration::from_millis(platform::clocks().1)
}

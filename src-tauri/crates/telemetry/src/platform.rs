//! What differs between operating systems: clocks, memory, cores, disks, heat and power, single processes, announcements of
//! pressure, the GPU's share, reading past the page cache.

#[cfg(any(target_os = "macos", test))]
mod libproc;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;
#[cfg(any(target_os = "macos", test))]
pub(crate) mod pages;
#[cfg(any(target_os = "macos", test))]
mod screen;

#[cfg(target_os = "linux")]
use linux as os;
#[cfg(target_os = "macos")]
use macos as os;

pub(crate) use os::{
    PRESSURE_COUNTS_AVAILABLE, clocks, energy, full_screen, gpu_cores, held, memory_is_back,
    of_group, open_uncached, performance_cores, power, read, skip_cache, started, thermal,
    working_set,
};

/// Announces pressure while this lives. On Linux, no call is running after it is dropped.
pub use os::PressureListener;

/// Returns the milliseconds of CPU time that all threads of a process have used; `None` if there is no such process, or it belongs to
/// another user.
pub use os::cpu_ms;

/// Returns the bytes that the end of the process would free; `None` if there is no such process, or it belongs to another
/// user.
///
/// Linux: the proportional share of its anonymous and shared memory, and its swap. Clean page cache, such as
/// mapped weights, is not part of it. macOS: `ri_phys_footprint`, the figure of Activity Monitor.
pub use os::footprint;

/// Gives memory that was freed back to the system, which the allocator would keep for the next time. Blocking.
pub use os::return_memory;

/// The memory in use on the machine at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MachineMemory {
    /// Memory and swap held by all programs and the system that cannot simply be dropped; it falls as soon as a program's
    /// memory is freed. Within a control group's limit, that group's.
    pub held_bytes: Option<u64>,
    /// Memory available without swapping. On Linux it may rise only seconds after memory was freed.
    pub available_bytes: Option<u64>,
}

/// Returns how many processes the kernel has killed for want of memory since its start, in all control groups; `None` on macOS, whose
/// kernel publishes no count.
pub use os::oom_kills;

/// The least time between two readings of [`machine_memory`] that may differ.
pub use os::MEMORY_INTERVAL;

/// Returns the real machine's memory, even while readings are scripted.
pub use os::machine_memory;

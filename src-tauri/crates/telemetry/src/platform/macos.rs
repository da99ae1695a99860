//! macOS: Mach's statistics, `sysctl`, `libproc`, IOKit's registry, dispatch's announcements, and Metal's working set.
#![expect(
    unsafe_code,
    reason = "the system's C interfaces have no safe wrapper in our dependencies"
)]

mod announced;
mod machine;
mod process;
mod screen;
mod slow;

pub use announced::PressureListener;
pub use machine::machine_memory;
pub(crate) use machine::{gpu_cores, performance_cores, read};
pub use process::{cpu_ms, footprint};
pub(crate) use process::{held, memory_is_back, of_group, started};
pub(crate) use screen::full_screen;
pub(crate) use slow::{power, thermal};

use objc2_metal::{MTLCreateSystemDefaultDevice, MTLDevice};
use rustix::fs::fcntl_nocache;
use std::{fs::File, io, mem, path::Path, time::Duration};

unsafe extern "C" {
    /// Of `malloc/malloc.h`.
    fn malloc_zone_pressure_relief(zone: *mut libc::c_void, goal: libc::size_t) -> libc::size_t;
}

pub fn return_memory() {
    // SAFETY: no zone means all, and a goal of 0 as much as can be; memory that is in use is not touched.
    unsafe { malloc_zone_pressure_relief(std::ptr::null_mut(), 0) };
}

/// From the third call within a second, `host_statistics64` may repeat its last answer until the second is over (xnu's
/// `host.c`).
pub const MEMORY_INTERVAL: Duration = Duration::from_millis(500);

/// The level comes from the kernel's own account of free, purgeable and compressed pages.
pub(crate) const PRESSURE_COUNTS_AVAILABLE: bool = true;

pub fn oom_kills() -> Option<u64> {
    None
}

/// Apple publishes no counter: IOReport's interface is private.
pub(crate) fn energy() -> Vec<crate::energy::PackageCounter> {
    Vec::new()
}

/// Returns the milliseconds since the system started: awake, and asleep.
pub(crate) fn clocks() -> (u64, u64) {
    let of = |clock| {
        // SAFETY: the struct is plain integers, for which all zeroes is a value.
        let mut time: libc::timespec = unsafe { mem::zeroed() };
        // SAFETY: the call writes one `timespec` at the address, which outlives it. Both clocks exist since 10.12.
        unsafe { libc::clock_gettime(clock, &raw mut time) };
        let (seconds, nanos) = (time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs());
        seconds
            .saturating_mul(1000)
            .saturating_add(nanos / 1_000_000)
    };
    // The first stops while the machine sleeps, the second does not, and neither follows changes of the time.
    let awake = of(libc::CLOCK_UPTIME_RAW);
    (awake, of(libc::CLOCK_MONOTONIC_RAW).saturating_sub(awake))
}

// Without it, Metal has no default device for a program without graphics.
#[link(name = "CoreGraphics", kind = "framework")]
unsafe extern "C" {}

/// Returns Metal's recommended working set, which follows `iogpu.wired_limit_mb`; `None` without a GPU.
pub(crate) fn working_set() -> Option<u64> {
    let device = MTLCreateSystemDefaultDevice()?;
    Some(device.recommendedMaxWorkingSetSize())
}

/// Opens a file so that reads leave nothing in the page cache.
pub(crate) fn open_uncached(path: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    skip_cache(&file)?;
    Ok(file)
}

/// Has reads and writes leave nothing in the page cache. What is cached already is still read from there.
pub(crate) fn skip_cache(file: &File) -> io::Result<()> {
    Ok(fcntl_nocache(file, true)?)
}

fn page_size() -> u64 {
    rustix::param::page_size() as u64
}

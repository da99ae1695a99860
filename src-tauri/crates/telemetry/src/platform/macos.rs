//! macOS: the kernel's own pressure level and footprint, and Metal's working set.
#![expect(
    unsafe_code,
    reason = "sysctl and libproc have no safe wrapper in our dependencies"
)]

use objc2_metal::{MTLCreateSystemDefaultDevice, MTLDevice};
use rustix::fs::fcntl_nocache;
use std::{ffi::c_void, fs::File, io, mem, path::Path};
use tierbar_core::status::{Pressure, Ram};

/// The level comes from the kernel's own account of free, purgeable and compressed pages.
pub(crate) const PRESSURE_COUNTS_AVAILABLE: bool = true;

/// `kern.memorystatus_vm_pressure_level`: 1 normal, 2 warning, 4 critical (xnu's `kVMPressure…`, as dispatch
/// sources report it). Normal if it cannot be read.
pub(crate) fn pressure() -> Pressure {
    let mut level: libc::c_int = 0;
    let mut size = mem::size_of_val(&level);
    // SAFETY: the name is a C string; `level` and `size` outlive the call, and `size` is the room in `level`.
    let status = unsafe {
        libc::sysctlbyname(
            c"kern.memorystatus_vm_pressure_level".as_ptr(),
            (&raw mut level).cast::<c_void>(),
            &raw mut size,
            std::ptr::null_mut(),
            0,
        )
    };
    match level {
        2 if status == 0 => Pressure::Warning,
        4 if status == 0 => Pressure::Critical,
        _ => Pressure::Normal,
    }
}

/// macOS has no memory limits around groups of processes.
pub(crate) fn within_limits(machine: Ram) -> Ram {
    machine
}

// Without it Metal has no default device for a program that draws nothing.
#[link(name = "CoreGraphics", kind = "framework")]
unsafe extern "C" {}

/// What Metal recommends to hold at most; it follows `iogpu.wired_limit_mb`. `None` without a GPU.
pub(crate) fn working_set() -> Option<u64> {
    let device = MTLCreateSystemDefaultDevice()?;
    Some(device.recommendedMaxWorkingSetSize())
}

/// Opens a file so that reads leave nothing in the page cache.
pub(crate) fn open_uncached(path: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    fcntl_nocache(&file, true)?;
    Ok(file)
}

pub(crate) fn footprint(pid: u32) -> Option<u64> {
    let pid = libc::c_int::try_from(pid).ok()?;
    // SAFETY: the struct is plain integers, for which all zeroes is a value.
    let mut usage: libc::rusage_info_v2 = unsafe { mem::zeroed() };
    // SAFETY: flavor V2 writes exactly one `rusage_info_v2` at the address; despite its type the last parameter
    // is that address, as Apple's libproc passes it on.
    let status = unsafe {
        libc::proc_pid_rusage(
            pid,
            libc::RUSAGE_INFO_V2,
            (&raw mut usage).cast::<libc::rusage_info_t>(),
        )
    };
    (status == 0).then_some(usage.ri_phys_footprint)
}

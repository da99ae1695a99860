//! The whole machine: macOS has no memory limits around groups of processes.

use super::page_size;
use crate::{
    figures::{Figures, Ticks},
    platform::{
        MachineMemory,
        pages::{Pages, pressure},
    },
};
use objc2_core_foundation::{CFDictionary, CFNumber, CFRetained, CFString, CFType};
use objc2_io_kit::{
    IOIteratorNext, IOObjectRelease, IORegistryEntryCreateCFProperty, IOServiceGetMatchingServices,
    IOServiceMatching, io_object_t,
};
use std::{
    ffi::{CStr, c_void},
    mem,
    sync::OnceLock,
};

/// Reads all figures but the clocks and the slow ones.
pub(crate) fn read() -> Figures {
    let swap: Option<libc::xsw_usage> = sysctl(c"vm.swapusage");
    let (disk_read, disk_written) = disk_bytes().unzip();
    let mut figures = Figures {
        ram_total_bytes: sysctl(c"hw.memsize"),
        pressure: sysctl(c"kern.memorystatus_vm_pressure_level").and_then(pressure),
        swap_total_bytes: swap.map(|swap| swap.xsu_total),
        swap_used_bytes: swap.map(|swap| swap.xsu_used),
        cpu: ticks(),
        disk_read_bytes: disk_read,
        disk_written_bytes: disk_written,
        ..Figures::default()
    };
    if let Some(pages) = pages() {
        pages.fill(&mut figures);
    }
    figures
}

/// Both figures are of one call, of which the kernel answers only a few each second (see [`super::MEMORY_INTERVAL`]).
pub fn machine_memory() -> MachineMemory {
    pages()
        .map(|pages| pages.memory(sysctl(c"hw.memsize")))
        .unwrap_or_default()
}

/// Returns the number of performance cores; `None` on a Mac with an Intel processor, whose cores are alike.
pub(crate) fn performance_cores() -> Option<usize> {
    let count: libc::c_int = sysctl(c"hw.perflevel0.physicalcpu")?;
    usize::try_from(count).ok()
}

/// Types that sysctl can return: plain integers.
trait SysctlValue: Copy {}
impl SysctlValue for libc::c_int {}
impl SysctlValue for u64 {}
impl SysctlValue for libc::xsw_usage {}

fn sysctl<T: SysctlValue>(name: &CStr) -> Option<T> {
    // SAFETY: `SysctlValue` types are integers or structs of them, for which all zeroes is a value.
    let mut value: T = unsafe { mem::zeroed() };
    let mut size = mem::size_of::<T>();
    // SAFETY: the name is a C string; `value` and `size` outlive the call, and `size` is the room in `value`.
    let status = unsafe {
        libc::sysctlbyname(
            name.as_ptr(),
            (&raw mut value).cast::<c_void>(),
            &raw mut size,
            std::ptr::null_mut(),
            0,
        )
    };
    (status == 0 && size == mem::size_of::<T>()).then_some(value)
}

/// The port of the host, cached because each call of `mach_host_self` adds a reference.
#[expect(
    deprecated,
    reason = "the crate it points to would be there for this alone"
)]
fn host() -> libc::mach_port_t {
    static HOST: OnceLock<libc::mach_port_t> = OnceLock::new();
    *HOST.get_or_init(|| {
        // SAFETY: the call has no preconditions.
        unsafe { libc::mach_host_self() }
    })
}

fn pages() -> Option<Pages> {
    // SAFETY: the struct is plain integers, for which all zeroes is a value.
    let mut pages: libc::vm_statistics64 = unsafe { mem::zeroed() };
    let mut count = libc::HOST_VM_INFO64_COUNT;
    // SAFETY: `count` is the room in `pages` in words; older systems write less and leave the rest as it is.
    let status = unsafe {
        libc::host_statistics64(
            host(),
            libc::HOST_VM_INFO64,
            (&raw mut pages).cast(),
            &raw mut count,
        )
    };
    if status != libc::KERN_SUCCESS {
        return None;
    }
    Some(Pages {
        size: page_size(),
        internal: u64::from(pages.internal_page_count),
        purgeable: u64::from(pages.purgeable_count),
        wired: u64::from(pages.wire_count),
        compressor: u64::from(pages.compressor_page_count),
        compressed: pages.total_uncompressed_pages_in_compressor,
        swapped_out: pages.swapouts,
    })
}

fn ticks() -> Option<Ticks> {
    let mut ticks = [0_u32; libc::CPU_STATE_MAX as usize];
    let mut count = libc::HOST_CPU_LOAD_INFO_COUNT;
    // SAFETY: the answer is an array of as many words as `ticks` has, and `count` says so.
    let status = unsafe {
        libc::host_statistics(
            host(),
            libc::HOST_CPU_LOAD_INFO,
            (&raw mut ticks).cast(),
            &raw mut count,
        )
    };
    let total: u64 = ticks.iter().copied().map(u64::from).sum();
    let idle = u64::from(ticks[libc::CPU_STATE_IDLE as usize]);
    (status == libc::KERN_SUCCESS && total > 0).then(|| Ticks {
        busy: total - idle,
        total,
    })
}

/// An entry of IOKit's registry.
struct RegistryEntry(io_object_t);

impl Drop for RegistryEntry {
    fn drop(&mut self) {
        IOObjectRelease(self.0);
    }
}

/// Returns the registry's entries of a class.
fn entries_of(class: &CStr) -> Option<impl Iterator<Item = RegistryEntry>> {
    // SAFETY: the name is a C string.
    let matching = unsafe { IOServiceMatching(class.as_ptr()) }?;
    // SAFETY: a mutable dictionary is a dictionary.
    let matching: CFRetained<CFDictionary> = unsafe { CFRetained::cast_unchecked(matching) };
    let mut found: io_object_t = 0;
    // SAFETY: port 0 is the default; `found` outlives the call, which sets it if it succeeds.
    let status = unsafe { IOServiceGetMatchingServices(0, Some(matching), &raw mut found) };
    if status != libc::KERN_SUCCESS {
        return None;
    }
    let found = RegistryEntry(found);
    Some(std::iter::from_fn(move || {
        let next = RegistryEntry(IOIteratorNext(found.0));
        (next.0 != 0).then_some(next)
    }))
}

/// Returns a property of an entry.
fn property(entry: &RegistryEntry, name: &'static str) -> Option<CFRetained<CFType>> {
    let key = CFString::from_static_str(name);
    // SAFETY: the entry is alive; the default allocator and no options are what may be left out.
    unsafe { IORegistryEntryCreateCFProperty(entry.0, Some(&key), None, 0) }
}

/// Returns the number of the GPU's cores; `None` on a Mac with an Intel processor.
pub(crate) fn gpu_cores() -> Option<usize> {
    let gpu = entries_of(c"AGXAccelerator")?.next()?;
    let count = property(&gpu, "gpu-core-count")?;
    usize::try_from(count.downcast_ref::<CFNumber>()?.as_i64()?).ok()
}

/// Returns the bytes that the block storage drivers have read since they started, and written. There is one for each disk, and
/// none for its partitions. When a disk is removed, the counters run backwards once.
fn disk_bytes() -> Option<(u64, u64)> {
    let (mut read, mut written) = (0_u64, 0_u64);
    for (reads, writes) in
        entries_of(c"IOBlockStorageDriver")?.filter_map(|driver| bytes_of(&driver))
    {
        read = read.saturating_add(reads);
        written = written.saturating_add(writes);
    }
    Some((read, written))
}

fn bytes_of(driver: &RegistryEntry) -> Option<(u64, u64)> {
    let statistics = property(driver, "Statistics")?;
    let statistics = statistics.downcast::<CFDictionary>().ok()?;
    // SAFETY: the registry's dictionaries have strings as keys and objects as values.
    let statistics: CFRetained<CFDictionary<CFString, CFType>> =
        unsafe { CFRetained::cast_unchecked(statistics) };
    let bytes = |key: &'static str| {
        let number = statistics.get(&CFString::from_static_str(key))?;
        u64::try_from(number.downcast_ref::<CFNumber>()?.as_i64()?).ok()
    };
    Some((bytes("Bytes (Read)")?, bytes("Bytes (Write)")?))
}

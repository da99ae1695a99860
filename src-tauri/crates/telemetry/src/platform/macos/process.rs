//! One process, by `libproc`.

use crate::platform::libproc::{self, Entry, holders, list, to_milliseconds};
use std::{ffi::c_void, io, mem, sync::OnceLock};

pub fn footprint(pid: u32) -> Option<u64> {
    Some(rusage(pid)?.ri_phys_footprint)
}

/// The kernel keeps this figure, so reading it is cheap.
pub(crate) fn held(pid: u32) -> Option<u64> {
    footprint(pid)
}

pub fn cpu_ms(pid: u32) -> Option<u64> {
    let used = rusage(pid)?;
    Some(milliseconds(
        used.ri_user_time.saturating_add(used.ri_system_time),
    ))
}

fn rusage(pid: u32) -> Option<libc::rusage_info_v2> {
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
    (status == 0).then_some(usage)
}

/// Times of processes are in ticks of the processor's clock, which are not nanoseconds on Apple silicon.
#[expect(
    deprecated,
    reason = "the crate it points to would be there for this alone"
)]
fn milliseconds(ticks: u64) -> u64 {
    static BASE: OnceLock<(u32, u32)> = OnceLock::new();
    let base = *BASE.get_or_init(|| {
        let mut base = libc::mach_timebase_info { numer: 1, denom: 1 };
        // SAFETY: the call writes one `mach_timebase_info` at the address, which outlives it.
        unsafe { libc::mach_timebase_info(&raw mut base) };
        (base.numer, base.denom)
    });
    to_milliseconds(ticks, base)
}

/// Returns when the process started, in microseconds of the time of day.
pub(crate) fn started(pid: u32) -> Option<u64> {
    entry(pid).ok().map(|entry| entry.started)
}

fn entry(pid: u32) -> io::Result<Entry> {
    let pid = libc::c_int::try_from(pid).map_err(|_| io::Error::from_raw_os_error(libc::ESRCH))?;
    // SAFETY: the struct is plain integers, for which all zeroes is a value.
    let mut info: libc::proc_bsdinfo = unsafe { mem::zeroed() };
    let size = mem::size_of_val(&info) as libc::c_int;
    // SAFETY: the flavor writes one `proc_bsdinfo` at the address, which outlives the call, and `size` is its size.
    let written = unsafe {
        libc::proc_pidinfo(
            pid,
            libc::PROC_PIDTBSDINFO,
            0,
            (&raw mut info).cast::<c_void>(),
            size,
        )
    };
    if written == size {
        let is_zombie = info.pbi_status == libc::SZOMB;
        let (seconds, microseconds) = (info.pbi_start_tvsec, info.pbi_start_tvusec);
        Ok(Entry::new(seconds, microseconds, is_zombie))
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Of a zombie, the kernel may report that there is no such process.
pub(crate) fn memory_is_back(pid: u32, started: u64) -> bool {
    libproc::memory_is_back(&entry(pid), started)
}

/// The members of a process group that hold memory.
pub(crate) fn of_group(group: u32) -> io::Result<Vec<u32>> {
    let group = libc::pid_t::try_from(group).map_err(|_| io::ErrorKind::InvalidInput)?;
    let pids = list(|pids| {
        let size = mem::size_of_val(pids) as libc::c_int;
        // SAFETY: the address is this thread's own `errno`.
        unsafe { *libc::__error() = 0 };
        // SAFETY: the call writes at most `size` bytes of process numbers at the address.
        let found =
            unsafe { libc::proc_listpgrppids(group, pids.as_mut_ptr().cast::<c_void>(), size) };
        let errno = io::Error::last_os_error().raw_os_error();
        (found, errno.unwrap_or(0))
    })?;
    Ok(holders(pids, entry))
}

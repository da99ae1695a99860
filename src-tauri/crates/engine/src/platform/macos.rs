//! macOS: cores from `sysctl`.

#![expect(unsafe_code, reason = "libc")]

/// Performance cores; an efficiency core in the pool would hold the others up at every barrier.
pub(super) fn fast_cores() -> Option<usize> {
    let mut count: libc::c_int = 0;
    let mut size = size_of::<libc::c_int>();
    // SAFETY: the name is NUL-terminated; the output is an int of `size` bytes, as this name's value is.
    let status = unsafe {
        libc::sysctlbyname(
            c"hw.perflevel0.physicalcpu".as_ptr(),
            (&raw mut count).cast(),
            &raw mut size,
            std::ptr::null_mut(),
            0,
        )
    };
    (status == 0).then(|| usize::try_from(count).ok()).flatten()
}

//! macOS: cores from `sysctl`.

#![expect(unsafe_code, reason = "libc")]

/// The class for work that a person started and does not wait for at each moment: it yields to what they do.
pub(super) fn give_way() {
    // SAFETY: sets a property of the calling thread.
    let _refused =
        unsafe { libc::pthread_set_qos_class_self_np(libc::qos_class_t::QOS_CLASS_UTILITY, 0) };
}

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

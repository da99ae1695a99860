//! What calls into the C++ shim share: strings to and from it, and a stack for those that recurse.

use crate::{
    bad,
    platform::{ThreadClock, exit_now},
};
use std::{
    ffi::{CStr, CString, c_char},
    panic, ptr,
    sync::mpsc::{RecvTimeoutError, channel},
    thread,
    time::Duration,
};
use tierbar_core::{Code, Error};

/// Address space; only what a call touches becomes memory. The shim's bounds are in proportion to it.
const DEEP_STACK: usize = 512 << 20;

/// Computing time. The shim's own bounds are reached in half of it by all that allocates; what does not can only be ended with
/// the process.
const LONGEST: Duration = Duration::from_secs(20);
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);

unsafe extern "C" {
    fn tierbar_string_free(text: *mut c_char);
}

/// Runs a call whose depth its input decides, on a thread of its own. Ends the process if it does not come to an end.
pub(super) fn on_deep_stack<T: Send>(
    call: impl FnOnce() -> Result<T, Error> + Send,
) -> Result<T, Error> {
    let (running, ended) = channel();
    let call = move || {
        // Sent first, and dropped at the end.
        let _sent = running.send(ThreadClock::of_this_thread());
        call()
    };
    thread::scope(|scope| {
        let thread = thread::Builder::new()
            .name("deep".into())
            .stack_size(DEEP_STACK)
            .spawn_scoped(scope, call)
            .map_err(|error| {
                Error::new(Code::Internal, format!("cannot start a thread: {error}"))
            })?;
        let clock = ended.recv();
        while ended.recv_timeout(BETWEEN_LOOKS) == Err(RecvTimeoutError::Timeout) {
            // Of a busy machine the call may get little.
            if clock.as_ref().is_ok_and(|clock| clock.spent() >= LONGEST) {
                tracing::error!("a chat template or grammar does not terminate");
                exit_now(70);
            }
        }
        thread
            .join()
            .unwrap_or_else(|panicked| panic::resume_unwind(panicked))
    })
}

/// # Errors
/// `BadRequest` if the text has a NUL byte.
pub(super) fn c_string(text: &str) -> Result<CString, Error> {
    CString::new(text).map_err(|_| bad("the request contains a NUL byte"))
}

/// Returns what a call returned, or the reason that it wrote to the place that it was given.
pub(super) fn or_reason<T>(call: impl FnOnce(*mut *mut c_char) -> Option<T>) -> Result<T, String> {
    let mut error = ptr::null_mut();
    let returned = call(&raw mut error);
    returned.ok_or_else(|| take_string(error).unwrap_or_default())
}

/// Takes over a string of the shim's.
pub(super) fn take_string(text: *mut c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: the shim returns NUL-terminated strings from malloc, which we own.
    let owned = unsafe { CStr::from_ptr(text) }
        .to_string_lossy()
        .into_owned();
    // SAFETY: as above; freed once, after the copy.
    unsafe { tierbar_string_free(text) };
    Some(owned)
}

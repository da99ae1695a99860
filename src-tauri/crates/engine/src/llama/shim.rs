//! What calls into the C++ shim share: strings to and from it, and a stack for those that recurse.

use std::{
    ffi::{CStr, CString, c_char},
    panic,
    sync::mpsc::{RecvTimeoutError, channel},
    thread,
    time::Duration,
};
use tierbar_core::{Code, Error};

/// Address space; only what a call touches becomes memory. The shim's bounds are in proportion to it.
const DEEP_STACK: usize = 512 << 20;

/// The shim's own bounds are reached in half of it by all that allocates; what does not can only be ended with the process.
const LONGEST: Duration = Duration::from_secs(20);

unsafe extern "C" {
    fn tierbar_string_free(text: *mut c_char);
}

/// Runs a call whose depth its input decides, on a thread of its own. Ends the process if it does not come to an end.
pub(super) fn on_deep_stack<T: Send>(
    call: impl FnOnce() -> Result<T, Error> + Send,
) -> Result<T, Error> {
    let (running, ended) = channel::<()>();
    let call = move || {
        let _until_the_end = running;
        call()
    };
    thread::scope(|scope| {
        let thread = thread::Builder::new()
            .name("deep".into())
            .stack_size(DEEP_STACK)
            .spawn_scoped(scope, call)
            .map_err(|error| Error::new(Code::Internal, format!("no thread: {error}")))?;
        if ended.recv_timeout(LONGEST) == Err(RecvTimeoutError::Timeout) {
            tracing::error!("a chat template or a grammar computes without end");
            crate::platform::exit_now(70);
        }
        thread
            .join()
            .unwrap_or_else(|panicked| panic::resume_unwind(panicked))
    })
}

/// # Errors
/// `BadRequest` if the text has a NUL byte.
pub(super) fn c_string(text: &str) -> Result<CString, Error> {
    CString::new(text).map_err(|_| Error::new(Code::BadRequest, "the request has a NUL byte"))
}

/// What a call returned, or the reason that it gave.
pub(super) fn taken(text: *mut c_char, error: *mut c_char) -> Result<String, String> {
    take(text).ok_or_else(|| take(error).unwrap_or_default())
}

/// Takes over a string of the shim's.
pub(super) fn take(text: *mut c_char) -> Option<String> {
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

//! Strings to and from the C++ shim.

use std::ffi::{CStr, CString, c_char};
use tierbar_core::{Code, Error};

unsafe extern "C" {
    fn tierbar_string_free(text: *mut c_char);
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

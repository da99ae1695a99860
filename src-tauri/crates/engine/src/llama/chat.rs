//! The model's own chat template, rendered by llama.cpp's Jinja engine through our C++ shim.

use super::model::Model;
use llama_cpp_sys_2 as sys;
use serde::Deserialize;
use serde_json::Value;
use std::{
    ffi::{CStr, CString, c_char},
    ptr::{self, NonNull},
    sync::{Arc, Mutex, PoisonError},
};
use tierbar_core::{Code, Error};

#[repr(C)]
struct RawTemplates {
    _opaque: [u8; 0],
}

unsafe extern "C" {
    fn tierbar_chat_new(
        model: *const sys::llama_model,
        error: *mut *mut c_char,
    ) -> *mut RawTemplates;
    fn tierbar_chat_free(templates: *mut RawTemplates);
    fn tierbar_chat_apply(
        templates: *const RawTemplates,
        request: *const c_char,
        error: *mut *mut c_char,
    ) -> *mut c_char;
    fn tierbar_string_free(text: *mut c_char);
}

/// A rendered conversation.
#[derive(Debug, Deserialize)]
pub(crate) struct Prompt {
    pub(crate) prompt: String,
    /// Strings of the template that end the answer.
    pub(crate) stops: Vec<String>,
}

#[derive(Debug)]
pub(crate) struct ChatTemplate {
    // The Jinja interpreter is not documented as re-entrant; rendering takes about a millisecond.
    raw: Mutex<NonNull<RawTemplates>>,
    _model: Arc<Model>,
}

// SAFETY: the C++ object is used by one thread at a time, under the mutex, and is not bound to a thread.
unsafe impl Send for ChatTemplate {}
// SAFETY: as above.
unsafe impl Sync for ChatTemplate {}

impl ChatTemplate {
    pub(crate) fn of(model: Arc<Model>) -> Result<Self, Error> {
        let mut error = ptr::null_mut();
        // SAFETY: the model is live; `error` receives a string that we own.
        let raw = unsafe { tierbar_chat_new(model.raw.as_ptr(), &raw mut error) };
        match NonNull::new(raw) {
            Some(raw) => Ok(Self {
                raw: Mutex::new(raw),
                _model: model,
            }),
            None => Err(Error::new(
                Code::ModelInvalid,
                format!(
                    "the model's chat template does not parse: {}",
                    take(error).unwrap_or_default()
                ),
            )),
        }
    }

    /// Renders a request: a JSON object with `messages` and, if given, `chat_template_kwargs`.
    pub(crate) fn apply(&self, request: &Value) -> Result<Prompt, Error> {
        let refused = |reason: String| {
            Error::new(
                Code::BadRequest,
                format!("the messages cannot be rendered: {reason}"),
            )
        };
        let request =
            CString::new(request.to_string()).map_err(|_| refused("a NUL byte".into()))?;
        let mut error = ptr::null_mut();
        let templates = self.raw.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the templates are live and used by us alone; the request is NUL-terminated.
        let rendered =
            unsafe { tierbar_chat_apply(templates.as_ptr(), request.as_ptr(), &raw mut error) };
        drop(templates);
        let Some(rendered) = take(rendered) else {
            return Err(refused(take(error).unwrap_or_default()));
        };
        serde_json::from_str(&rendered)
            .map_err(|error| Error::new(Code::Internal, format!("chat shim: {error}")))
    }
}

impl Drop for ChatTemplate {
    fn drop(&mut self) {
        let raw = self.raw.get_mut().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: created by tierbar_chat_new, freed once.
        unsafe { tierbar_chat_free(raw.as_ptr()) }
    }
}

/// Takes over a string of the shim's.
fn take(text: *mut c_char) -> Option<String> {
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

//! The model's own chat template, rendered by llama.cpp's Jinja engine through our C++ shim.

use super::{
    Token,
    model::Model,
    shim::{c_string, take, taken},
};
use llama_cpp_sys_2 as sys;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{
    ffi::c_char,
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
        given: *const c_char,
        error: *mut *mut c_char,
    ) -> *mut RawTemplates;
    fn tierbar_chat_free(templates: *mut RawTemplates);
    fn tierbar_chat_apply(
        templates: *const RawTemplates,
        model: *const sys::llama_model,
        request: *const c_char,
        error: *mut *mut c_char,
    ) -> *mut c_char;
}

/// A rendered conversation, and how its answer is to be constrained and read.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Prompt {
    pub(crate) prompt: String,
    /// Strings of the template that end the answer.
    pub(crate) stops: Vec<String>,
    /// The prompt's end that belongs to the answer already.
    generation_prompt: String,
    /// GBNF; empty for none.
    pub(crate) grammar: String,
    /// It applies from its trigger on.
    grammar_lazy: bool,
    trigger_patterns: Vec<String>,
    trigger_tokens: Vec<Token>,
    /// Control tokens whose text the parser wants to see.
    pub(crate) preserved_tokens: Vec<Token>,
    /// Empty if the template has no thinking that is marked.
    thinking_start: String,
    thinking_ends: Vec<String>,
    /// llama.cpp's `common_chat_format`; 0 is plain text.
    format: i32,
    parser: String,
    /// Whether the template has a place for tools.
    pub(crate) supports_tools: bool,
}

impl Prompt {
    /// Whether the answer is text and nothing else.
    pub(crate) fn is_plain(&self) -> bool {
        self.format == 0 && self.parser.is_empty()
    }
}

#[derive(Debug)]
pub(crate) struct ChatTemplate {
    // The Jinja interpreter is not documented as re-entrant; rendering takes about a millisecond.
    raw: Mutex<NonNull<RawTemplates>>,
    model: Arc<Model>,
}

// SAFETY: the C++ object is used by one thread at a time, under the mutex, and is not bound to a thread.
unsafe impl Send for ChatTemplate {}
// SAFETY: as above.
unsafe impl Sync for ChatTemplate {}

impl ChatTemplate {
    /// The model's own, or the given one in its place.
    pub(crate) fn new(model: Arc<Model>, given: Option<&str>) -> Result<Self, Error> {
        let mut error = ptr::null_mut();
        let given = c_string(given.unwrap_or_default())?;
        // SAFETY: the model is live; `error` receives a string that we own.
        let raw = unsafe { tierbar_chat_new(model.raw.as_ptr(), given.as_ptr(), &raw mut error) };
        match NonNull::new(raw) {
            Some(raw) => Ok(Self {
                raw: Mutex::new(raw),
                model,
            }),
            None => Err(Error::new(
                Code::ModelInvalid,
                format!(
                    "the chat template does not parse: {}",
                    take(error).unwrap_or_default()
                ),
            )),
        }
    }

    /// Renders a request: a JSON object with `messages` and, if given, `tools`, `tool_choice`, `json_schema`,
    /// `enable_thinking` and `chat_template_kwargs`.
    pub(crate) fn apply(&self, request: &Value) -> Result<Prompt, Error> {
        let refused = |reason: String| {
            Error::new(
                Code::BadRequest,
                format!("the messages cannot be rendered: {reason}"),
            )
        };
        let request = c_string(&request.to_string())?;
        let mut error = ptr::null_mut();
        let templates = self.raw.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the templates are live and used by us alone; the request is NUL-terminated.
        let rendered = unsafe {
            tierbar_chat_apply(
                templates.as_ptr(),
                self.model.raw.as_ptr(),
                request.as_ptr(),
                &raw mut error,
            )
        };
        drop(templates);
        let rendered = taken(rendered, error).map_err(refused)?;
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

//! Parses an answer into text, thinking and tool calls.

use super::{
    chat::Prompt,
    owned::Owned,
    shim::{c_string, on_deep_stack, or_reason, take_string},
};
use crate::bad;
use serde::Deserialize;
use std::ffi::{CStr, c_char};
use tierbar_core::{Code, Error};

#[derive(Debug)]
#[repr(C)]
struct RawParser {
    _opaque: [u8; 0],
}

unsafe extern "C" {
    fn tierbar_parser_new(spec: *const c_char, error: *mut *mut c_char) -> *mut RawParser;
    fn tierbar_parser_free(parser: *mut RawParser);
    fn tierbar_parser_read(
        parser: *const RawParser,
        text: *const c_char,
        partial: bool,
        deep: bool,
        error: *mut *mut c_char,
    ) -> *mut c_char;
}

/// The nesting that an ordinary stack and a deep one can parse. The parser recurses with it, partly without an allocation
/// at which the shim could stop it.
const SHALLOW: usize = 64;
const DEEPEST: usize = 4096;

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct Message {
    pub(crate) content: String,
    pub(crate) reasoning_content: String,
    pub(crate) tool_calls: Vec<ToolCall>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct ToolCall {
    pub(crate) id: String,
    pub(crate) name: String,
    /// JSON, as the model wrote it.
    pub(crate) arguments: String,
}

/// Reads the answers to one rendered conversation.
#[derive(Debug)]
pub(crate) struct AnswerParser {
    raw: Owned<RawParser>,
    calls_only: bool,
    one_call: bool,
}

// SAFETY: the C++ object is constant after it was made; reading makes its own state.
unsafe impl Sync for AnswerParser {}

impl AnswerParser {
    /// Returns `None` if the whole answer is text.
    ///
    /// # Errors
    /// `BadRequest` if the answer's format exceeds the shim's limits.
    pub(crate) fn of(prompt: &Prompt) -> Result<Option<Self>, Error> {
        if prompt.is_plain() {
            return Ok(None);
        }
        let spec = serde_json::to_string(prompt)
            .map_err(|error| Error::new(Code::Internal, format!("chat shim: {error}")))?;
        let spec = c_string(&spec)?;
        on_deep_stack(|| {
            // SAFETY: the spec is NUL-terminated; `error` receives a string that we own.
            let made = or_reason(|error| unsafe {
                Owned::new(
                    tierbar_parser_new(spec.as_ptr(), error),
                    tierbar_parser_free,
                )
            });
            let raw = made.map_err(|reason| {
                bad(format!("the answer could not be parsed: {reason}"))
                    .hint("send fewer or simpler tools")
            })?;
            Ok(Some(Self {
                raw,
                calls_only: prompt.calls_only,
                one_call: prompt.one_call,
            }))
        })
    }

    /// Parses an answer. `partial` means that more will follow.
    ///
    /// # Errors
    /// The text does not match the template's form, or is nested too deeply.
    pub(crate) fn read(&self, text: &str, partial: bool) -> Result<Message, String> {
        let depth = nesting_depth(text);
        if depth > DEEPEST {
            return Err(format!("it has {depth} nested brackets"));
        }
        let text = c_string(&text.replace('\0', "\u{fffd}")).map_err(|error| error.message)?;
        let read = if depth > SHALLOW {
            on_deep_stack(|| Ok(self.parse(&text, partial, true))).map_err(|error| error.message)?
        } else {
            self.parse(&text, partial, false)
        };
        let mut message: Message =
            serde_json::from_str(&read?).map_err(|error| error.to_string())?;
        if self.calls_only {
            // Blanks before a call.
            message.content.clear();
        }
        if self.one_call {
            message.tool_calls.truncate(1);
        }
        Ok(message)
    }

    fn parse(&self, text: &CStr, partial: bool, deep: bool) -> Result<String, String> {
        let (parser, text) = (self.raw.as_ptr(), text.as_ptr());
        or_reason(|error| {
            // SAFETY: the parser is live; the text is NUL-terminated; `error` receives a string that we own.
            take_string(unsafe { tierbar_parser_read(parser, text, partial, deep, error) })
        })
    }
}

fn nesting_depth(text: &str) -> usize {
    let (mut open, mut most) = (0_usize, 0);
    for byte in text.bytes() {
        match byte {
            b'[' | b'{' => open += 1,
            b']' | b'}' => open = open.saturating_sub(1),
            _ => {}
        }
        most = most.max(open);
    }
    most
}

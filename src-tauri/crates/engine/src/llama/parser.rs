//! Parses an answer into text, thinking and tool calls.

use super::{
    chat::Prompt,
    owned_pointer::OwnedPointer,
    shim::{c_string, on_deep_stack, or_reason, take_string},
};
use crate::bad;
use serde::Deserialize;
use std::ffi::{CStr, c_char};
use tierbar_chats::marks::overlap;
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
/// How many places within thoughts a call is looked for at, from the end.
const MOST_PLACES: usize = 8;
/// How much may follow the word that begins a call before its arguments have to begin, and how much is held back at most.
const CALL_HEAD: usize = 96;
const MOST_HELD: usize = 16 << 10;

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
    raw: OwnedPointer<RawParser>,
    calls_only: bool,
    one_call: bool,
    thinking_end: Option<String>,
    call_starts: Vec<String>,
}

// SAFETY: the C++ object is constant after it was made; reading makes its own state.
unsafe impl Sync for AnswerParser {}

impl Message {
    fn is_only_thoughts(&self) -> bool {
        self.content.is_empty() && self.tool_calls.is_empty()
    }
}

/// Whether what follows the word that begins a call may be one, and is not words about it.
fn may_be_call(rest: &str) -> bool {
    let head = &rest[..rest.floor_char_boundary(CALL_HEAD)];
    rest.len() <= MOST_HELD && (rest.len() <= CALL_HEAD || head.contains(['{', '<']))
}

impl AnswerParser {
    /// Returns `None` if the whole answer is text.
    ///
    /// # Errors
    /// `BadRequest` if the answer's format exceeds the shim's limits.
    pub(crate) fn for_prompt(prompt: &Prompt) -> Result<Option<Self>, Error> {
        if prompt.is_plain() {
            return Ok(None);
        }
        let spec = serde_json::to_string(prompt)
            .map_err(|error| Error::new(Code::Internal, format!("chat shim: {error}")))?;
        let spec = c_string(&spec)?;
        on_deep_stack(|| {
            // SAFETY: the spec is NUL-terminated; `error` receives a string that we own.
            let made = or_reason(|error| unsafe {
                OwnedPointer::new(
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
                thinking_end: prompt.thinking_ends.first().cloned(),
                call_starts: prompt.call_starts.clone(),
            }))
        })
    }

    /// Parses an answer. `partial` means that more will follow.
    ///
    /// # Errors
    /// The text does not match the template's form, or is nested too deeply.
    pub(crate) fn parse_answer(&self, text: &str, partial: bool) -> Result<Message, String> {
        let message = self.read_form(text, partial)?;
        if partial || !message.is_only_thoughts() {
            return Ok(message);
        }
        Ok(self.read_call_in_thoughts(text).unwrap_or(message))
    }

    /// Takes out of thoughts that have not ended what may turn out to be a call.
    pub(crate) fn hold_call(&self, message: &mut Message) {
        if !message.is_only_thoughts() {
            return;
        }
        let thoughts = &message.reasoning_content;
        let places = self.call_starts.iter().map(|start| {
            let mut begun = thoughts.match_indices(start);
            let begun = begun.find(|(at, _)| may_be_call(&thoughts[at + start.len()..]));
            begun.map_or(thoughts.len() - overlap(thoughts, start), |(at, _)| at)
        });
        if let Some(at) = places.min() {
            message.reasoning_content.truncate(at);
        }
    }

    /// Reads an answer whose thoughts end with a call, and not with their marker: where a template begins the thoughts, some models
    /// write no end of them.
    fn read_call_in_thoughts(&self, text: &str) -> Option<Message> {
        let end = self.thinking_end.as_ref()?;
        let starts = self.call_starts.iter();
        let places = starts.flat_map(|start| text.match_indices(start));
        let mut places: Vec<_> = places.map(|(at, _)| at).collect();
        places.sort_unstable();
        places.dedup();
        let skipped = places.len().saturating_sub(MOST_PLACES);
        places.into_iter().skip(skipped).find_map(|at| {
            let (thoughts, call) = text.split_at(at);
            let ended = format!("{thoughts}{end}\n\n{call}");
            let message = self.read_form(&ended, false).ok()?;
            let is_call = message.content.trim().is_empty() && !message.tool_calls.is_empty();
            is_call.then_some(message)
        })
    }

    fn read_form(&self, text: &str, partial: bool) -> Result<Message, String> {
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

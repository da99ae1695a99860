//! The model's own chat template, rendered by llama.cpp's Jinja engine through our C++ shim.

mod call_ids;

use super::{
    Token,
    model::Model,
    owned_pointer::OwnedPointer,
    shim::{c_string, on_deep_stack, or_reason, take_string},
};
use crate::bad;
use llama_cpp_sys_2 as sys;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::{
    borrow::Cow,
    collections::BTreeSet,
    ffi::{CStr, c_char},
    sync::Arc,
};
use tierbar_core::{Code, Error};
use tierbar_grammar::replace_placeholders;

#[derive(Debug)]
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

/// A rendered conversation, with what constrains and parses its answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Prompt {
    pub(crate) prompt: String,
    /// Strings of the template that end an answer.
    pub(crate) stops: Vec<String>,
    /// GBNF; empty for none.
    pub(crate) grammar: String,
    /// The same, of an answer that begins with a call as text. It holds an answer once the call's arguments begin.
    #[serde(default)]
    pub(crate) written_grammar: String,
    /// Control tokens whose text the parser needs.
    pub(crate) preserved_tokens: Vec<Token>,
    /// The start marker of thinking; empty without one.
    thinking_start: String,
    /// The markers that end it.
    pub(super) thinking_ends: Vec<String>,
    /// The words that tell a call from text.
    pub(super) call_starts: Vec<String>,
    /// llama.cpp's `common_chat_format`; 0 is plain text.
    format: i32,
    parser: String,
    /// Whether the template has a place for tools, and its answers' calls are read; of a try alone.
    #[serde(default)]
    calls_tools: bool,
    pub(super) calls_only: bool,
    /// Whether the answer has at most one call.
    pub(super) one_call: bool,
    /// What else the shim constrains and parses the answer by.
    #[serde(flatten)]
    others: Map<String, Value>,
}

impl Prompt {
    /// Returns whether the answer is only text.
    pub(crate) fn is_plain(&self) -> bool {
        self.format == 0 && self.parser.is_empty()
    }

    /// Returns whether text can follow directly: not within thinking, before a channel is named, or under a grammar.
    pub(crate) fn takes_words(&self) -> bool {
        let prompt = self.prompt.trim_end();
        let thinks =
            !self.thinking_start.is_empty() && prompt.ends_with(self.thinking_start.trim_end());
        !thinks && !prompt.ends_with("<|start|>assistant") && self.grammar.is_empty()
    }
}

#[derive(Debug)]
pub(crate) struct ChatTemplate {
    raw: OwnedPointer<RawTemplates>,
    model: Arc<Model>,
    /// Whether the template has a place for tools, and the answers' calls are read.
    pub(crate) calls_tools: bool,
    /// Whether calls need ids of Mistral's length.
    short_call_ids: bool,
    /// Markers of the template that are no tokens of the model: as text, they end an answer.
    written_markers: Vec<String>,
}

// SAFETY: rendering takes it as constant, and makes its own state; llama-server renders from several threads, too.
unsafe impl Sync for ChatTemplate {}

impl ChatTemplate {
    /// Creates the model's own template, or the given one instead.
    ///
    /// # Errors
    /// `ModelInvalid` if it does not parse, or exceeds the shim's limits.
    pub(crate) fn new(model: Arc<Model>, given: Option<&str>) -> Result<Self, Error> {
        let given = c_string(given.unwrap_or_default())?;
        let raw = on_deep_stack(|| {
            // SAFETY: the model is live; `error` receives a string that we own.
            let made = or_reason(|error| unsafe {
                let raw = tierbar_chat_new(model.raw.as_ptr(), given.as_ptr(), error);
                OwnedPointer::new(raw, tierbar_chat_free)
            });
            made.map_err(|reason| {
                let message = format!("the chat template cannot be used: {reason}");
                Error::new(Code::ModelInvalid, message)
                    .hint("choose another chat template or model for the tier")
            })
        })?;
        let mut template = Self {
            raw,
            model,
            calls_tools: false,
            short_call_ids: false,
            written_markers: Vec::new(),
        };
        template.calls_tools = template.try_tools();
        template.short_call_ids = template.calls_tools
            && template
                .try_call_id(&"0".repeat(call_ids::LENGTH + 1))
                .is_err()
            && template.try_call_id(&"0".repeat(call_ids::LENGTH)).is_ok();
        template.written_markers = template.try_turns();
        Ok(template)
    }

    fn try_tools(&self) -> bool {
        let parameters = json!({"type": "object", "properties": {"text": {"type": "string"}}});
        let function = json!({"name": "try", "description": "A try", "parameters": parameters});
        let prompt = self.apply(&json!({
            "messages": [{"role": "user", "content": "Hi"}],
            "tools": [{"type": "function", "function": function}],
            "tool_choice": "auto",
            "try_tools": true,
        }));
        prompt.is_ok_and(|prompt| prompt.calls_tools)
    }

    /// Returns the markers between an answer and the next question that the model has no tokens for. A model without a template gets
    /// ChatML's, for one, and can only write these as text.
    fn try_turns(&self) -> Vec<String> {
        const ANSWER: &str = "An answer.";
        const QUESTION: &str = "Another question?";
        let message = |role: &str, text: &str| json!({"role": role, "content": text});
        let messages = [
            message("user", "Hi"),
            message("assistant", ANSWER),
            message("user", QUESTION),
        ];
        let Ok(rendered) = self.apply(&json!({"messages": messages})) else {
            return Vec::new();
        };
        let rest = rendered.prompt.split_once(ANSWER);
        let between = rest.and_then(|(_, rest)| rest.split_once(QUESTION));
        let mut found = between.map_or_else(Vec::new, |(between, _)| angle_bracket_words(between));
        found.retain(|marker| {
            let tokens = self.model.tokenize(marker, false, true);
            tokens.is_ok_and(|tokens| tokens.len() > 1)
        });
        found
    }

    fn try_call_id(&self, id: &str) -> Result<Prompt, Error> {
        let call =
            json!({"id": id, "type": "function", "function": {"name": "try", "arguments": "{}"}});
        self.apply(&json!({
            "messages": [
                {"role": "user", "content": "Hi"},
                {"role": "assistant", "content": "", "tool_calls": [call]},
                {"role": "tool", "tool_call_id": id, "content": "Done"},
            ],
        }))
    }

    /// Renders a request: a JSON object with `messages` and, if given, `tools`, `tool_choice`, `parallel_tool_calls`,
    /// `generic_tools` (the messages describe the tools), `held_tools` (the tools with the schemas that calls are held to),
    /// `written_calls` (calls may come as text), `json_schema` (beside tools, only in the generic form), `forms` (parts of the grammar by the constants that stand for them in
    /// these schemas), `enable_thinking` and `chat_template_kwargs`.
    ///
    /// # Errors
    /// `BadRequest` with the template's own message, or if it exceeds the shim's limits.
    pub(crate) fn apply(&self, request: &Value) -> Result<Prompt, Error> {
        let forms = request["forms"].as_object();
        let mut request = Cow::Borrowed(request);
        if self.short_call_ids {
            call_ids::shorten(&mut request.to_mut()["messages"]);
        }
        let request = c_string(&request.to_string())?;
        let rendered = on_deep_stack(|| self.render(&request))?;
        let mut prompt: Prompt = serde_json::from_str(&rendered)
            .map_err(|error| Error::new(Code::Internal, format!("chat shim: {error}")))?;
        if let Some(forms) = forms {
            prompt.grammar = replace_placeholders(prompt.grammar, forms);
            prompt.written_grammar = replace_placeholders(prompt.written_grammar, forms);
        }
        prompt.stops.extend_from_slice(&self.written_markers);
        Ok(prompt)
    }

    fn render(&self, request: &CStr) -> Result<String, Error> {
        let (templates, model) = (self.raw.as_ptr(), self.model.raw.as_ptr());
        let rendered = or_reason(|error| {
            // SAFETY: templates and model are live; the request is NUL-terminated; `error` receives a string that we own.
            take_string(unsafe { tierbar_chat_apply(templates, model, request.as_ptr(), error) })
        });
        rendered.map_err(|reason| {
            bad(format!("the messages cannot be rendered: {reason}")).hint(
                "change the messages, tools or schemas, or choose another chat template for the tier",
            )
        })
    }
}

/// The words in angle brackets of a text, each once.
fn angle_bracket_words(text: &str) -> Vec<String> {
    let ends = text.split_inclusive('>').filter(|end| end.ends_with('>'));
    let markers = ends.filter_map(|end| Some(&end[end.rfind('<')?..]));
    let is_word = |marker: &&str| marker.len() > 2 && !marker.contains(char::is_whitespace);
    let found: BTreeSet<_> = markers.filter(is_word).map(str::to_owned).collect();
    found.into_iter().collect()
}

#[cfg(test)]
mod tests;

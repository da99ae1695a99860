//! Tool calls as blocks of a stream. Servers may write several calls at a time, and Anthropic's blocks follow one another: what
//! arrives of a later one is held until the one before it has ended.

use super::answer::{AnswerWriter, Kind, call_id};
use serde_json::json;
use tierbar_inference::{
    ask::{ToolCall, ToolCallPart},
    calls::ArgumentsProgress,
};

/// The calls of an answer.
#[derive(Debug, Default)]
pub(super) struct AnswerCalls {
    calls: Vec<Call>,
    /// Those before it are complete.
    next: usize,
    /// What was generated while a call was open.
    texts: Vec<(Kind, String)>,
}

#[derive(Debug, Default)]
struct Call {
    /// Its arguments are those that have not been sent.
    call: ToolCall,
    reach: ArgumentsProgress,
}

impl AnswerWriter {
    pub(super) fn call(&mut self, part: ToolCallPart) -> String {
        let (held, number) = (&mut self.held, part.index);
        if number < held.next {
            return String::new();
        }
        if number >= held.calls.len() {
            held.calls.push(Call::default());
        }
        let Some(call) = held.calls.get_mut(number) else {
            return String::new();
        };
        call.reach.read(&part.arguments);
        call.call.add(part);
        self.write_calls(false)
    }

    /// Writes a text, unless a call is being written.
    pub(super) fn text(&mut self, kind: Kind, text: String) -> String {
        let mut out = String::new();
        let held = &mut self.held;
        if let Some(call) = held.calls.get(held.next) {
            if !call.reach.is_end() || !held.texts.is_empty() {
                held.texts.push((kind, text));
                return out;
            }
            held.next += 1;
        }
        out += &self.open(kind, || match kind {
            Kind::Thinking => json!({"type": "thinking", "thinking": "", "signature": ""}),
            _ => json!({"type": "text", "text": ""}),
        });
        out + &match kind {
            Kind::Thinking => self.delta("thinking_delta", "thinking", text),
            _ => self.delta("text_delta", "text", text),
        }
    }

    /// Writes what is held, at the end of the answer.
    pub(super) fn write_held(&mut self) -> String {
        let mut out = self.write_calls(true);
        self.held.next = self.held.calls.len();
        for (kind, text) in std::mem::take(&mut self.held.texts) {
            out += &self.text(kind, text);
        }
        out
    }

    fn write_calls(&mut self, all: bool) -> String {
        let mut out = String::new();
        loop {
            let number = self.held.next;
            let more = number + 1 < self.held.calls.len();
            let Some(call) = self.held.calls.get_mut(number) else {
                return out;
            };
            let goes_on = more && (all || call.reach.is_end());
            let arguments = std::mem::take(&mut call.call.arguments);
            let (id, name) = (call.call.id.clone(), call.call.name.clone());
            out += &self.open(
                Kind::Tool(number),
                || json!({"type": "tool_use", "id": call_id(id), "name": name, "input": {}}),
            );
            if !arguments.is_empty() {
                out += &self.delta("input_json_delta", "partial_json", arguments);
            }
            if !goes_on {
                return out;
            }
            self.held.next += 1;
        }
    }
}

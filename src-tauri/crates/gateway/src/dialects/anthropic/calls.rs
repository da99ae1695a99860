//! Calls of tools as blocks of a stream. Servers may write several calls at a time, and Anthropic's blocks follow one another: what
//! comes of a later one is held until the one before it has ended.

use super::answer::{AnswerWriter, Kind, call_id};
use crate::inference::{
    calls::{Calls, Reach},
    wire::ToolCall,
};
use serde_json::json;

/// The calls of an answer.
#[derive(Debug, Default)]
pub(super) struct Held {
    numbers: Calls,
    calls: Vec<Call>,
    /// Those before it have been told.
    next: usize,
    /// What was said while a call was open.
    words: Vec<(Kind, String)>,
}

#[derive(Debug, Default)]
struct Call {
    id: Option<String>,
    name: String,
    /// Arguments that have not been told.
    untold: String,
    reach: Reach,
}

impl AnswerWriter {
    pub(super) fn call(&mut self, piece: ToolCall) -> String {
        let held = &mut self.held;
        let Some(number) = held.numbers.number(&piece).filter(|&it| it >= held.next) else {
            return String::new();
        };
        if number >= held.calls.len() {
            held.calls.push(Call::default());
        }
        let call = &mut held.calls[number];
        if call.id.is_none() {
            call.id = piece.id.filter(|id| !id.is_empty());
        }
        if call.name.is_empty() {
            call.name = piece.function.name.unwrap_or_default();
        }
        let more = piece.function.arguments.unwrap_or_default();
        call.reach.read(&more);
        call.untold.push_str(&more);
        self.write_calls(false)
    }

    /// Says it, unless a call is being written.
    pub(super) fn word(&mut self, kind: Kind, text: String) -> String {
        let mut out = String::new();
        let held = &mut self.held;
        if let Some(call) = held.calls.get(held.next) {
            if !call.reach.is_end() || !held.words.is_empty() {
                held.words.push((kind, text));
                return out;
            }
            held.next += 1;
        }
        out += &self.open(kind, || match kind {
            Kind::Thinking => json!({"type": "thinking", "thinking": "", "signature": ""}),
            _ => json!({"type": "text", "text": ""}),
        });
        out + &self.delta(&match kind {
            Kind::Thinking => json!({"type": "thinking_delta", "thinking": text}),
            _ => json!({"type": "text_delta", "text": text}),
        })
    }

    /// Nothing more comes.
    pub(super) fn write_held(&mut self) -> String {
        let mut out = self.write_calls(true);
        self.held.next = self.held.calls.len();
        for (kind, text) in std::mem::take(&mut self.held.words) {
            out += &self.word(kind, text);
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
            let untold = std::mem::take(&mut call.untold);
            let (id, name) = (call.id.clone(), call.name.clone());
            out += &self.open(
                Kind::Tool(number),
                || json!({"type": "tool_use", "id": call_id(id), "name": name, "input": {}}),
            );
            if !untold.is_empty() {
                out += &self.delta(&json!({"type": "input_json_delta", "partial_json": untold}));
            }
            if !goes_on {
                return out;
            }
            self.held.next += 1;
        }
    }
}

//! One choice of a streamed chat answer: raw text in, the parts of a message out.

use crate::{
    llama::{AnswerParser, Message, ToolCall},
    request::functions,
};
use serde_json::{Map, Value, json};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tierbar_chats::written_calls::{complete_calls, may_begin_call};
use tierbar_grammar::OfferedTools;

/// How often the whole text is parsed again, at most, and for at most a tenth of the time.
const READ_EVERY: Duration = Duration::from_millis(50);
/// A text this short is parsed at once.
const SHORT: usize = 512;

#[derive(Debug)]
pub(super) struct AnswerReader {
    /// `None` if all of the text is content.
    parser: Option<Arc<AnswerParser>>,
    /// Whether a call has OpenAI's older form.
    function_call: bool,
    /// The functions whose calls may come as text.
    writable: Option<Arc<OfferedTools>>,
    text: String,
    /// The part that was sent.
    message: Message,
    /// All of the message, if a part is held back.
    held: Option<Message>,
    read: Option<Instant>,
    rest: Duration,
}

impl AnswerReader {
    pub(super) fn new(
        parser: Option<Arc<AnswerParser>>,
        function_call: bool,
        writable: Option<Arc<OfferedTools>>,
    ) -> Self {
        Self {
            parser,
            function_call,
            writable,
            text: String::new(),
            message: Message::default(),
            held: None,
            read: None,
            rest: READ_EVERY,
        }
    }

    /// Takes more text, and returns the new deltas.
    pub(super) fn push(&mut self, text: &str) -> Vec<Value> {
        self.text.push_str(text);
        let Some(parser) = self.parser.clone() else {
            self.message.content.push_str(text);
            return vec![json!({"content": text})];
        };
        let now = Instant::now();
        let resting = self.read.is_some_and(|read| now - read < self.rest);
        if resting && self.text.len() > SHORT {
            return Vec::new();
        }
        let read = parser.parse_answer(&self.text, true);
        self.rest = READ_EVERY.max(now.elapsed() * 10);
        self.read = Some(Instant::now());
        // An unfinished text may not be valid yet.
        let Ok(mut message) = read else {
            return Vec::new();
        };
        let whole = message.clone();
        parser.hold_call(&mut message);
        if self.may_be_written_call(&message) {
            message.content.clear();
        }
        self.held = (message != whole).then_some(whole);
        self.deltas_to(message)
    }

    /// Takes a whole answer.
    pub(super) fn take(&mut self, text: &str, cut: bool) {
        if self.parser.is_none() {
            self.push(text);
        } else {
            text.clone_into(&mut self.text);
            self.finish(cut);
        }
    }

    /// The deltas that are left when nothing follows. `cut`: the answer was not at its end.
    pub(super) fn finish(&mut self, cut: bool) -> Vec<Value> {
        let Some(parser) = self.parser.take() else {
            return Vec::new();
        };
        let read = parser
            .parse_answer(&self.text, cut)
            .or_else(|_| parser.parse_answer(&self.text, true));
        match read {
            Ok(mut message) => {
                if !cut {
                    self.read_written_calls(&mut message);
                }
                self.deltas_to(message)
            }
            // Not in the template's form: the text is shown unchanged.
            Err(_) if self.message == Message::default() => self.deltas_to(Message {
                content: self.text.clone(),
                ..Message::default()
            }),
            Err(_) => {
                let held = self.held.take();
                held.map_or_else(Vec::new, |message| self.deltas_to(message))
            }
        }
    }

    /// Whether the text may turn out to be a call, and none of it was sent.
    fn may_be_written_call(&self, message: &Message) -> bool {
        let Some(tools) = &self.writable else {
            return false;
        };
        self.message.content.is_empty()
            && message.tool_calls.is_empty()
            && may_begin_call(&message.content, &tools.offered)
    }

    /// Turns a text that is only calls into calls: some models write them in another form than their template's.
    fn read_written_calls(&self, message: &mut Message) {
        let tools = match &self.writable {
            // Whole as in parts: what would not be held back is text.
            Some(tools) if self.may_be_written_call(message) => tools,
            _ => return,
        };
        let most = if tools.parallel { usize::MAX } else { 1 };
        let written = complete_calls(&message.content, &tools.offered).into_iter();
        let calls = written.take(most).map(|(name, arguments)| ToolCall {
            name,
            arguments,
            ..ToolCall::default()
        });
        message.tool_calls = calls.collect();
        if !message.tool_calls.is_empty() {
            message.content.clear();
        }
    }

    /// Why an answer with a call ended; `None` without one.
    pub(super) fn call_reason(&self) -> Option<&'static str> {
        let reason = if self.function_call {
            "function_call"
        } else {
            "tool_calls"
        };
        (!self.message.tool_calls.is_empty()).then_some(reason)
    }

    /// The whole message, in OpenAI's shape.
    pub(super) fn message(&self) -> Value {
        let Message {
            content,
            reasoning_content,
            tool_calls,
        } = &self.message;
        let mut message = json!({"role": "assistant", "content": content});
        if content.is_empty() && !tool_calls.is_empty() {
            message["content"] = Value::Null;
        }
        if !reasoning_content.is_empty() {
            message["reasoning_content"] = json!(reasoning_content);
        }
        if !tool_calls.is_empty() {
            let calls = tool_calls.iter().map(|call| {
                let function = json!({"name": call.name, "arguments": call.arguments});
                json!({"id": call.id, "type": "function", "function": function})
            });
            message["tool_calls"] = calls.collect();
        }
        self.formed(message)
    }

    fn formed(&self, message: Value) -> Value {
        if self.function_call {
            functions::with_function_call(message)
        } else {
            message
        }
    }

    fn deltas_to(&mut self, mut now: Message) -> Vec<Value> {
        let sent = &self.message;
        if now.tool_calls.len() < sent.tool_calls.len() {
            return Vec::new();
        }
        for (index, call) in now.tool_calls.iter_mut().enumerate() {
            match sent.tool_calls.get(index) {
                Some(before) => call.id.clone_from(&before.id),
                None if call.id.is_empty() => {
                    call.id = format!("call_{}", uuid::Uuid::new_v4().simple());
                }
                None => {}
            }
        }
        let mut deltas = Vec::new();
        for (key, before, after) in [
            (
                "reasoning_content",
                &sent.reasoning_content,
                &now.reasoning_content,
            ),
            ("content", &sent.content, &now.content),
        ] {
            if let Some(more) = added_text(before, after) {
                deltas.push(Value::Object(Map::from_iter([(key.into(), json!(more))])));
            }
        }
        for (index, call) in now.tool_calls.iter().enumerate() {
            let delta = call_delta(index, sent.tool_calls.get(index), call);
            deltas.extend(delta.map(|delta| self.formed(delta)));
        }
        self.message = now;
        deltas
    }
}

fn call_delta(index: usize, before: Option<&ToolCall>, call: &ToolCall) -> Option<Value> {
    let nothing = ToolCall::default();
    let known = before.unwrap_or(&nothing);
    let more = added_text(&known.arguments, &call.arguments);
    let mut delta = json!({"index": index, "function": {"arguments": more.unwrap_or_default()}});
    if known.name != call.name {
        delta["id"] = json!(call.id);
        delta["type"] = json!("function");
        delta["function"]["name"] = json!(call.name);
    } else if more.is_none() {
        return None;
    }
    Some(json!({"tool_calls": [delta]}))
}

/// What `after` has beyond `before`; `None` for nothing, or if it is no continuation.
fn added_text<'a>(before: &str, after: &'a str) -> Option<&'a str> {
    after.strip_prefix(before).filter(|more| !more.is_empty())
}

#[cfg(test)]
mod tests;

//! An answer as Anthropic's events.

use super::{
    answer::{Kind, Telling, call_id},
    failure,
};
use crate::{
    dialect::Dialect,
    openai::wire::{Chunk, Completion, ToolCall},
};
use serde_json::{Value, json};
use tierbar_core::Error;

impl Dialect for Telling {
    const STREAM: &'static str = "text/event-stream";

    fn waiting(&mut self) -> String {
        event("ping", &json!({"type": "ping"}))
    }

    fn chunk(&mut self, chunk: Chunk) -> String {
        if let Some(model) = chunk.model.filter(|_| !self.begun) {
            self.model = model;
        }
        if let Some(usage) = chunk.usage {
            self.usage = usage;
        }
        let mut out = self.begin();
        let Some(choice) = chunk.choices.into_iter().next() else {
            return out;
        };
        let mut delta = choice.delta;
        if let Some(text) = delta.thoughts() {
            out += &self.open(
                Kind::Thinking,
                || json!({"type": "thinking", "thinking": "", "signature": ""}),
            );
            out += &self.delta(&json!({"type": "thinking_delta", "thinking": text}));
        }
        if let Some(text) = delta.content.filter(|text| !text.is_empty()) {
            out += &self.open(Kind::Text, || json!({"type": "text", "text": ""}));
            out += &self.delta(&json!({"type": "text_delta", "text": text}));
        }
        for call in delta.tool_calls.unwrap_or_default() {
            out += &self.call(call);
        }
        self.end.note(choice.finish_reason, choice.stop_reason);
        out
    }

    fn end(&mut self) -> String {
        let mut out = self.begin() + &self.close();
        let delta = json!({"stop_reason": self.end.reason(), "stop_sequence": self.end.stop()});
        let last = json!({"type": "message_delta", "delta": delta, "usage": self.usage()});
        out += &event("message_delta", &last);
        out + &event("message_stop", &json!({"type": "message_stop"}))
    }

    fn failed(&mut self, error: &Error) -> String {
        event("error", &failure::error_body(error))
    }

    fn whole(self, answer: Completion) -> Value {
        self.take_whole(answer)
    }
}

impl Telling {
    fn begin(&mut self) -> String {
        if std::mem::replace(&mut self.begun, true) {
            return String::new();
        }
        let message = self.message(Vec::new(), false);
        event(
            "message_start",
            &json!({"type": "message_start", "message": message}),
        )
    }

    /// Goes on in a block of this kind: in the one that is open, or in a new one.
    fn open(&mut self, kind: Kind, block: impl FnOnce() -> Value) -> String {
        if self.open == Some(kind) {
            return String::new();
        }
        let out = self.close();
        let begun =
            json!({"type": "content_block_start", "index": self.blocks, "content_block": block()});
        self.open = Some(kind);
        self.blocks += 1;
        out + &event("content_block_start", &begun)
    }

    fn close(&mut self) -> String {
        if self.open.take().is_none() {
            return String::new();
        }
        let closed = json!({"type": "content_block_stop", "index": self.blocks - 1});
        event("content_block_stop", &closed)
    }

    fn delta(&self, delta: &Value) -> String {
        let index = self.blocks.saturating_sub(1);
        let delta = json!({"type": "content_block_delta", "index": index, "delta": delta});
        event("content_block_delta", &delta)
    }

    fn call(&mut self, call: ToolCall) -> String {
        let (kind, name) = (Kind::Tool(call.index), call.function.name);
        let id = call.id;
        let mut out = self.open(kind, || {
            json!({"type": "tool_use", "id": call_id(id), "name": name.unwrap_or_default(), "input": {}})
        });
        if let Some(json) = call.function.arguments.filter(|json| !json.is_empty()) {
            out += &self.delta(&json!({"type": "input_json_delta", "partial_json": json}));
        }
        out
    }
}

fn event(name: &str, data: &Value) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tierbar_core::Code;

    fn names(events: &str) -> Vec<&str> {
        events
            .lines()
            .filter_map(|line| line.strip_prefix("event: "))
            .collect()
    }

    fn data(events: &str) -> Vec<Value> {
        events
            .lines()
            .filter_map(|line| line.strip_prefix("data: "))
            .map(|data| serde_json::from_str(data).unwrap())
            .collect()
    }

    fn told(chunks: Vec<Value>) -> String {
        let mut telling = Telling::new("fast".to_owned());
        let mut out = String::new();
        for chunk in chunks {
            out += &telling.chunk(serde_json::from_value(chunk).unwrap());
        }
        out + &telling.end()
    }

    fn delta(delta: Value) -> Value {
        json!({"model": "small", "choices": [{"delta": delta, "finish_reason": null}]})
    }

    #[test]
    fn each_kind_of_content_is_a_block_that_is_closed_before_the_next() {
        let call = |index, id: Option<&str>, arguments| {
            delta(
                json!({"tool_calls": [{"index": index, "id": id, "function": {"name": id, "arguments": arguments}}]}),
            )
        };
        let events = told(vec![
            delta(json!({"role": "assistant", "content": null})),
            delta(json!({"reasoning_content": "hm"})),
            delta(json!({"content": "I "})),
            delta(json!({"content": "look."})),
            call(0, Some("a"), "{\"x\""),
            call(0, None, ":1}"),
            call(1, Some("b"), ""),
            json!({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}),
            json!({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 9}}),
        ]);
        assert_eq!(
            names(&events),
            [
                "message_start",
                "content_block_start",
                "content_block_delta",
                "content_block_stop",
                "content_block_start",
                "content_block_delta",
                "content_block_delta",
                "content_block_stop",
                "content_block_start",
                "content_block_delta",
                "content_block_delta",
                "content_block_stop",
                "content_block_start",
                "content_block_stop",
                "message_delta",
                "message_stop",
            ]
        );
        let data = data(&events);
        assert_eq!(data[0]["message"]["model"], "small");
        assert_eq!(data[0]["message"]["stop_reason"], Value::Null);
        let starts: Vec<_> = data
            .iter()
            .filter(|event| event["type"] == "content_block_start")
            .map(|event| {
                (
                    event["index"].as_u64().unwrap(),
                    event["content_block"]["type"].as_str().unwrap(),
                )
            })
            .collect();
        assert_eq!(
            starts,
            [
                (0, "thinking"),
                (1, "text"),
                (2, "tool_use"),
                (3, "tool_use")
            ]
        );
        let last = &data[data.len() - 2];
        assert_eq!(last["delta"]["stop_reason"], "tool_use");
        assert_eq!(last["usage"]["output_tokens"], 9);
    }

    #[test]
    fn an_empty_answer_begins_and_ends() {
        let events = told(Vec::new());
        assert_eq!(
            names(&events),
            ["message_start", "message_delta", "message_stop"]
        );
    }

    #[test]
    fn a_failure_is_the_last_event() {
        let mut telling = Telling::new(String::new());
        assert_eq!(names(&telling.waiting()), ["ping"]);
        let failed = telling.failed(&Error::new(Code::WorkerCrashed, "it died"));
        assert_eq!(names(&failed), ["error"]);
        assert_eq!(data(&failed)[0]["error"]["code"], "worker_crashed");
    }
}

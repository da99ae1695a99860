//! An answer as Anthropic's events.

use super::{
    answer::{AnswerWriter, Kind, SIGNATURE, tool_use},
    failure,
};
use crate::respond::Dialect;
use serde_json::{Value, json};
use tierbar_inference::ask::{CompleteAnswer, Event};

impl Dialect for AnswerWriter {
    const STREAM: &'static str = "text/event-stream";
    type Rendered = String;

    fn event(&mut self, event: Event) -> String {
        match event {
            Event::Progress(_) => render("ping", &json!({"type": "ping"})),
            Event::Chain(report) => {
                self.chain.get_or_insert(report);
                String::new()
            }
            Event::Usage(usage) => {
                self.usage = usage;
                String::new()
            }
            Event::Model(model) => {
                if !self.begun {
                    self.model = model;
                }
                self.begin()
            }
            Event::Reasoning(text) => self.begin() + &self.text(Kind::Thinking, text),
            Event::Text(text) => self.begin() + &self.text(Kind::Text, text),
            Event::ToolCall(part) => self.begin() + &self.call(part),
            Event::Finished { reason, stop } => {
                (self.finish, self.stop) = (reason, stop);
                self.finish()
            }
            Event::Failed(failed) => render("error", &failure::error_body(&failed.error, None)),
            Event::Started(_) | Event::Passed(_) | Event::Sampling(_) | Event::LogProbs(_) => {
                String::new()
            }
        }
    }

    fn whole(mut self, answer: CompleteAnswer) -> String {
        self.model = answer.model.unwrap_or(self.model);
        self.usage = answer.usage;
        self.chain = answer.chain;
        (self.finish, self.stop) = (answer.reason, answer.stop);
        let mut content = Vec::new();
        if !answer.reasoning.is_empty() {
            content.push(Value::from_iter([
                ("type", "thinking".to_owned()),
                ("thinking", answer.reasoning),
                ("signature", SIGNATURE.to_owned()),
            ]));
        }
        if !answer.text.is_empty() {
            let text = [("type", "text".to_owned()), ("text", answer.text)];
            content.push(Value::from_iter(text));
        }
        let mut taken = 0;
        let calls = answer.calls.into_iter();
        content.extend(calls.map(|call| tool_use(call, &mut taken)));
        self.message(content, true).to_string()
    }
}

impl AnswerWriter {
    fn begin(&mut self) -> String {
        if std::mem::replace(&mut self.begun, true) {
            return String::new();
        }
        let message = self.message(Vec::new(), false);
        render(
            "message_start",
            &json!({"type": "message_start", "message": message}),
        )
    }

    fn finish(&mut self) -> String {
        let mut out = self.begin() + &self.write_held() + &self.close();
        let last = json!({"type": "message_delta", "delta": self.end(), "usage": self.usage()});
        out += &render("message_delta", &last);
        out + &render("message_stop", &json!({"type": "message_stop"}))
    }

    /// Goes on in a block of this kind: in the one that is open, or in a new one.
    pub(super) fn open(&mut self, kind: Kind, block: impl FnOnce() -> Value) -> String {
        if self.open == Some(kind) {
            return String::new();
        }
        let out = self.close();
        let begun =
            json!({"type": "content_block_start", "index": self.blocks, "content_block": block()});
        self.open = Some(kind);
        self.blocks += 1;
        out + &render("content_block_start", &begun)
    }

    fn close(&mut self) -> String {
        let Some(open) = self.open.take() else {
            return String::new();
        };
        let signed = match open {
            Kind::Thinking => self.delta("signature_delta", "signature", SIGNATURE.to_owned()),
            Kind::Text | Kind::Tool(_) => String::new(),
        };
        let closed = json!({"type": "content_block_stop", "index": self.blocks - 1});
        signed + &render("content_block_stop", &closed)
    }

    pub(super) fn delta(&self, kind: &str, field: &str, piece: String) -> String {
        let index = self.blocks.saturating_sub(1);
        let mut event = json!({"type": "content_block_delta", "index": index});
        event["delta"] = Value::from_iter([("type", kind.to_owned()), (field, piece)]);
        render("content_block_delta", &event)
    }
}

fn render(name: &str, data: &Value) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{events_of, failed};
    use tierbar_core::{Code, Error};
    use tierbar_inference::ask::Stage;

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

    fn render(chunks: Vec<Value>) -> String {
        let mut writer = AnswerWriter::new("fast".to_owned());
        let events = events_of(chunks).into_iter();
        events.map(|event| writer.event(event)).collect()
    }

    fn delta(delta: Value) -> Value {
        json!({"model": "small", "choices": [{"delta": delta, "finish_reason": null}]})
    }

    #[test]
    fn each_content_block_is_closed_before_the_next() {
        let call = |index, id: Option<&str>, arguments| {
            delta(
                json!({"tool_calls": [{"index": index, "id": id, "function": {"name": id, "arguments": arguments}}]}),
            )
        };
        let events = render(vec![
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
        let signed = json!({"type": "signature_delta", "signature": "unsigned"});
        assert_eq!(data[3]["delta"], signed);
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

    /// The blocks as a client puts them together.
    fn blocks(events: &str) -> Vec<(String, String)> {
        let (mut blocks, mut open) = (Vec::new(), false);
        for event in data(events) {
            match event["type"].as_str().unwrap() {
                "content_block_start" => {
                    assert!(!std::mem::replace(&mut open, true));
                    let block = &event["content_block"];
                    let name = block.get("id").unwrap_or(&block["type"]);
                    blocks.push((name.as_str().unwrap().to_owned(), String::new()));
                }
                "content_block_delta" => {
                    assert_eq!(event["index"], blocks.len() - 1);
                    let delta = &event["delta"];
                    let more = delta.get("partial_json").unwrap_or(&delta["text"]);
                    blocks.last_mut().unwrap().1 += more.as_str().unwrap();
                }
                "content_block_stop" => assert!(std::mem::replace(&mut open, false)),
                _ => {}
            }
        }
        assert!(!open);
        blocks
    }

    fn piece(index: Option<usize>, id: Option<&str>, arguments: &str) -> Value {
        let function = json!({"name": id.map(|_| "look"), "arguments": arguments});
        delta(json!({"tool_calls": [{"index": index, "id": id, "function": function}]}))
    }

    #[test]
    fn calls_are_told_apart_and_one_after_another_however_they_come() {
        let block = |id: &str, text: &str| (id.to_owned(), text.to_owned());
        let both = [block("a", "{\"x\":1}"), block("b", "{\"y\":2}")];
        // Not numbered.
        let events = render(vec![
            piece(None, Some("a"), "{\"x\":"),
            piece(None, None, "1}"),
            piece(None, Some("b"), "{\"y\":2}"),
        ]);
        assert_eq!(blocks(&events), both);
        // Both at a time.
        let events = render(vec![
            piece(Some(0), Some("a"), ""),
            piece(Some(1), Some("b"), ""),
            piece(Some(0), None, "{\"x\":"),
            piece(Some(1), None, "{\"y\":"),
            delta(json!({"content": "I look."})),
            piece(Some(0), None, "1}"),
            piece(Some(1), None, "2}"),
        ]);
        let said = [both.to_vec(), vec![block("text", "I look.")]].concat();
        assert_eq!(blocks(&events), said);
        // One behind the other, with words between.
        let events = render(vec![
            piece(Some(0), Some("a"), "{\"x\":1}"),
            delta(json!({"content": "And"})),
            piece(Some(1), Some("b"), "{\"y\":2}"),
        ]);
        let said = [both[0].clone(), block("text", "And"), both[1].clone()];
        assert_eq!(blocks(&events), said);
    }

    #[test]
    fn a_stream_with_calls_ends_for_their_sake() {
        let events = render(vec![
            piece(Some(0), Some("a"), "{}"),
            json!({"choices": [{"delta": {}, "finish_reason": "stop"}]}),
        ]);
        let data = data(&events);
        assert_eq!(data[data.len() - 2]["delta"]["stop_reason"], "tool_use");
    }

    #[test]
    fn the_first_event_counts_cached_tokens_apart() {
        let mut first = delta(json!({"role": "assistant", "content": null}));
        (first["prompt_tokens"], first["cached_tokens"]) = (10.into(), 7.into());
        let usage = json!({"prompt_tokens": 10, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 7}});
        let events = data(&render(vec![
            first,
            delta(json!({"content": "Yes."})),
            json!({"choices": [{"delta": {}, "finish_reason": "stop"}]}),
            json!({"choices": [], "usage": usage}),
        ]));
        for usage in [&events[0]["message"]["usage"], &events[4]["usage"]] {
            assert_eq!(usage["input_tokens"], 3, "{events:?}");
            assert_eq!(usage["cache_read_input_tokens"], 7);
            assert_eq!(usage["cache_creation_input_tokens"], 0);
        }
    }

    #[test]
    fn an_empty_answer_begins_and_ends() {
        let events = render(Vec::new());
        assert_eq!(
            names(&events),
            ["message_start", "message_delta", "message_stop"]
        );
    }

    #[test]
    fn a_failure_is_the_last_event() {
        let mut writer = AnswerWriter::new(String::new());
        let waits = writer.event(Event::Progress(Stage::Load));
        assert_eq!(names(&waits), ["ping"]);
        let failed = writer.event(failed(Error::new(Code::WorkerCrashed, "it died")));
        assert_eq!(names(&failed), ["error"]);
        assert_eq!(data(&failed)[0]["error"]["code"], "worker_crashed");
    }
}

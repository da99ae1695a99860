//! Anthropic's events as OpenAI's chunks.

use super::{
    answer::{Block, End, Usage},
    failure,
};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};
use tierbar_core::json::{COPIES, MOST_MEMORY, check, repair::parse};

/// Of an answer's id and model, in characters.
const LONGEST_NAME: usize = 256;

/// One answer while it is rendered.
#[derive(Debug, Default)]
pub(super) struct AnswerWriter {
    id: String,
    model: String,
    created: i64,
    /// The stream ends with what was used, and its other chunks say that there is nothing yet.
    include_usage: bool,
    usage: Usage,
    end: End,
    /// How many tools have been called, and whether the last call's arguments have begun; `None` once it is whole.
    calls: usize,
    calling: Option<bool>,
    over: bool,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event {
    MessageStart {
        message: MessageStart,
    },
    ContentBlockStart {
        content_block: Block,
    },
    ContentBlockDelta {
        delta: Delta,
    },
    ContentBlockStop {},
    MessageDelta {
        #[serde(default)]
        delta: End,
        #[serde(default)]
        usage: Usage,
    },
    MessageStop {},
    Ping {},
    Error {},
    #[serde(other)]
    Other,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct MessageStart {
    id: String,
    model: String,
    usage: Usage,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type")]
enum Delta {
    #[serde(rename = "text_delta")]
    Text { text: String },
    #[serde(rename = "thinking_delta")]
    Thinking { thinking: String },
    #[serde(rename = "input_json_delta")]
    InputJson { partial_json: String },
    #[serde(other)]
    Other,
}

impl AnswerWriter {
    pub(super) fn new(include_usage: bool) -> Self {
        Self {
            include_usage,
            created: Timestamp::now().as_second(),
            ..Self::default()
        }
    }

    /// The stream has had its last event.
    pub(super) fn is_over(&self) -> bool {
        self.over
    }

    /// What an event's data is in OpenAI's stream; empty for nothing.
    ///
    /// # Errors
    /// For an event that cannot be read: without its text, the answer would not be complete.
    pub(super) fn event(&mut self, data: &[u8]) -> Result<String, serde_json::Error> {
        check(data, COPIES, MOST_MEMORY)?;
        let event = match parse(data) {
            Ok(event) => event,
            Err(error) => {
                // Anything but an event is ignored.
                let is_part = match error.is_data() {
                    true => names_block(data),
                    false => data.contains(&b'{'),
                };
                return match is_part {
                    true => Err(error),
                    false => Ok(String::new()),
                };
            }
        };
        Ok(match event {
            Event::MessageStart { message } => {
                // They are in each chunk.
                self.id = message.id.chars().take(LONGEST_NAME).collect();
                self.model = message.model.chars().take(LONGEST_NAME).collect();
                self.usage.note(message.usage);
                self.delta(&json!({"role": "assistant", "content": ""}))
            }
            Event::ContentBlockStart { content_block } => self.begin(content_block),
            Event::ContentBlockDelta { delta } => match delta {
                Delta::Text { text } => self.written("content", &text),
                Delta::Thinking { thinking } => self.written("reasoning_content", &thinking),
                Delta::InputJson { partial_json } => self.arguments(&partial_json),
                Delta::Other => String::new(),
            },
            // OpenAI's arguments are JSON, be there none.
            Event::ContentBlockStop {} => {
                let has_none = self.calling == Some(false);
                let out = self.arguments(if has_none { "{}" } else { "" });
                self.calling = None;
                out
            }
            Event::MessageDelta { delta, usage } => {
                self.end.note(delta);
                self.usage.note(usage);
                String::new()
            }
            Event::MessageStop {} => self.finish(),
            Event::Ping {} => ": ping\n\n".to_owned(),
            Event::Error {} => {
                self.over = true;
                format!("data: {}\n\n", failure::openai(data))
            }
            Event::Other => String::new(),
        })
    }

    fn begin(&mut self, block: Block) -> String {
        match block {
            Block::Text { text } => self.written("content", &text),
            Block::Thinking { thinking } => self.written("reasoning_content", &thinking),
            Block::ToolUse { id, name, input } => {
                let function = json!({"name": name, "arguments": ""});
                let call = json!({"index": self.calls, "id": id, "type": "function", "function": function});
                self.calls += 1;
                self.calling = Some(false);
                let mut out = self.delta(&json!({"tool_calls": [call]}));
                // Some servers write no pieces.
                if input.as_object().is_some_and(|input| !input.is_empty()) {
                    out += &self.arguments(&input.to_string());
                }
                out
            }
            Block::Other => String::new(),
        }
    }

    fn written(&self, field: &str, text: &str) -> String {
        if text.is_empty() {
            return String::new();
        }
        self.delta(&json!({field: text}))
    }

    fn arguments(&mut self, piece: &str) -> String {
        if piece.is_empty() || self.calling.is_none() {
            return String::new();
        }
        self.calling = Some(true);
        let index = self.calls.saturating_sub(1);
        self.delta(&json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}))
    }

    fn finish(&mut self) -> String {
        self.over = true;
        let mut choice = json!({"index": 0, "delta": {}, "finish_reason": self.end.finish()});
        if let Some(stop) = self.end.stop() {
            choice["stop_reason"] = stop.into();
        }
        let mut out = self.chunk(&json!([choice]), Value::Null);
        if self.include_usage {
            out += &self.chunk(&json!([]), self.usage.openai());
        }
        out + "data: [DONE]\n\n"
    }

    fn delta(&self, delta: &Value) -> String {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": null});
        self.chunk(&json!([choice]), Value::Null)
    }

    fn chunk(&self, choices: &Value, usage: Value) -> String {
        let mut chunk = json!({
            "id": self.id,
            "object": "chat.completion.chunk",
            "created": self.created,
            "model": self.model,
            "choices": choices,
        });
        if self.include_usage {
            chunk["usage"] = usage;
        }
        format!("data: {chunk}\n\n")
    }
}

fn names_block(data: &[u8]) -> bool {
    let event: Result<Value, _> = serde_json::from_slice(data);
    event.is_ok_and(|event| {
        let kind = event["type"].as_str().unwrap_or_default();
        kind.starts_with("content_block_") || kind == "message_delta"
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(writer: &mut AnswerWriter, events: &[Value]) -> Vec<Value> {
        let reply: String = events
            .iter()
            .map(|event| writer.event(event.to_string().as_bytes()).unwrap())
            .collect();
        let data = reply.lines().filter_map(|line| line.strip_prefix("data: "));
        data.map(|data| serde_json::from_str(data).unwrap_or_else(|_| data.into()))
            .collect()
    }

    fn start() -> Value {
        json!({"type": "message_start", "message": {"id": "msg_1", "model": "claude-x", "usage": {"input_tokens": 5, "output_tokens": 1}}})
    }

    fn delta(delta: Value) -> Value {
        json!({"type": "content_block_delta", "index": 0, "delta": delta})
    }

    fn block(block: Value) -> Value {
        json!({"type": "content_block_start", "index": 0, "content_block": block})
    }

    #[test]
    fn each_event_is_a_chunk_and_usage_comes_last() {
        let stop = json!({"type": "content_block_stop", "index": 0});
        let tool = |id| block(json!({"type": "tool_use", "id": id, "name": "look", "input": {}}));
        let piece = |json| delta(json!({"type": "input_json_delta", "partial_json": json}));
        let mut writer = AnswerWriter::new(true);
        let reply = render(
            &mut writer,
            &[
                start(),
                block(json!({"type": "thinking", "thinking": "", "signature": ""})),
                delta(json!({"type": "thinking_delta", "thinking": "hm"})),
                delta(json!({"type": "signature_delta", "signature": "c2ln"})),
                stop.clone(),
                block(json!({"type": "text", "text": ""})),
                delta(json!({"type": "text_delta", "text": "I look."})),
                stop.clone(),
                tool("a"),
                piece(""),
                piece("{\"at\""),
                piece(":1}"),
                stop.clone(),
                tool("b"),
                stop,
                json!({"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": null}, "usage": {"output_tokens": 9}}),
                json!({"type": "message_stop"}),
            ],
        );
        let deltas: Vec<_> = reply[..8]
            .iter()
            .map(|chunk| chunk["choices"][0]["delta"].clone())
            .collect();
        let begun = |index, id| json!({"tool_calls": [{"index": index, "id": id, "type": "function", "function": {"name": "look", "arguments": ""}}]});
        let more = |index, piece| json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]});
        assert_eq!(
            deltas,
            [
                json!({"role": "assistant", "content": ""}),
                json!({"reasoning_content": "hm"}),
                json!({"content": "I look."}),
                begun(0, "a"),
                more(0, "{\"at\""),
                more(0, ":1}"),
                begun(1, "b"),
                more(1, "{}"),
            ]
        );
        for chunk in &reply[..9] {
            assert_eq!(chunk.get("usage"), Some(&Value::Null), "{chunk}");
        }
        assert_eq!(reply[8]["choices"][0]["finish_reason"], "tool_calls");
        assert_eq!(
            (&reply[8]["id"], &reply[8]["model"]),
            (&json!("msg_1"), &json!("claude-x"))
        );
        assert_eq!(reply[9]["choices"], json!([]));
        assert_eq!(reply[9]["usage"]["prompt_tokens"], 5);
        assert_eq!(reply[9]["usage"]["completion_tokens"], 9);
        assert_eq!(reply[10], "[DONE]");
        assert!(writer.is_over());
    }

    #[test]
    fn complete_arguments_are_sent_once() {
        let input =
            block(json!({"type": "tool_use", "id": "a", "name": "look", "input": {"at": 1}}));
        let mut writer = AnswerWriter::new(false);
        let reply = render(&mut writer, &[input, json!({"type": "content_block_stop"})]);
        let call = |chunk: &Value| {
            chunk["choices"][0]["delta"]["tool_calls"][0]["function"]["arguments"].clone()
        };
        assert_eq!(
            reply.iter().map(call).collect::<Vec<_>>(),
            ["", "{\"at\":1}"]
        );
    }

    #[test]
    fn stop_strings_are_sent_and_usage_only_on_request() {
        let end = json!({"type": "message_delta", "delta": {"stop_reason": "stop_sequence", "stop_sequence": "END"}});
        let mut writer = AnswerWriter::new(false);
        let reply = render(
            &mut writer,
            &[start(), end, json!({"type": "message_stop"})],
        );
        assert_eq!(reply.len(), 3);
        assert!(
            reply.iter().all(|chunk| chunk.get("usage").is_none()),
            "{reply:?}"
        );
        assert_eq!(reply[1]["choices"][0]["finish_reason"], "stop");
        assert_eq!(reply[1]["choices"][0]["stop_reason"], "END");
    }

    #[test]
    fn a_failure_is_the_last_event_and_a_ping_a_comment() {
        let mut writer = AnswerWriter::new(false);
        for (event, chunk) in [
            (r#"{"type":"ping"}"#, ": ping\n\n"),
            (r#"{"type":"vertex_event","x":1}"#, ""),
            ("no json", ""),
        ] {
            assert_eq!(writer.event(event.as_bytes()).unwrap(), chunk);
        }
        for lost in [
            r#"{"type":"content_block_delta","delta":{"type":"text_delta"}}"#,
            "x{",
        ] {
            assert!(writer.event(lost.as_bytes()).is_err(), "{lost}");
        }
        assert!(!writer.is_over());
        let failed = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
        let reply = render(&mut writer, &[failed]);
        assert_eq!(reply[0]["error"]["code"], "overloaded_error");
        assert!(writer.is_over());
    }
}

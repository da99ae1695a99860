//! An answer in OpenAI's words: whole here, piece by piece in [`super::stream`].

use crate::metrics::TokenUse;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};
use tierbar_core::config::CacheTokens;

/// A message that came whole. Lenient, as [`crate::wire`] is.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Message {
    pub(super) id: String,
    pub(super) model: String,
    content: Vec<Block>,
    #[serde(flatten)]
    end: End,
    pub(super) usage: Usage,
}

/// Other kinds are what Anthropic's servers do by themselves, if they are asked to.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Block {
    Text {
        #[serde(default)]
        text: String,
    },
    Thinking {
        #[serde(default)]
        thinking: String,
    },
    ToolUse {
        id: String,
        name: String,
        #[serde(default)]
        input: Value,
    },
    #[serde(other)]
    Other,
}

/// How it ended.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default)]
pub(super) struct End {
    stop_reason: Option<String>,
    stop_sequence: Option<String>,
}

/// In tokens. What was read from a cache, or written to one, is counted apart.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(from = "Value")]
pub struct Usage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_written: Option<u64>,
    /// Those of them that are kept for an hour.
    cached_for_an_hour: Option<u64>,
    cache_read: Option<u64>,
}

impl From<Value> for Usage {
    fn from(usage: Value) -> Self {
        Self::read(&usage)
    }
}

impl End {
    pub(super) fn note(&mut self, end: Self) {
        if end.stop_reason.is_some() {
            *self = end;
        }
    }

    pub(super) fn finish(&self) -> &'static str {
        match self.stop_reason.as_deref() {
            Some("max_tokens" | "model_context_window_exceeded") => "length",
            Some("tool_use") => "tool_calls",
            Some("refusal") => "content_filter",
            _ => "stop",
        }
    }

    /// The stop string that ended it, in our own engine's form.
    pub(super) fn stop(&self) -> Option<&str> {
        self.stop_sequence.as_deref()
    }
}

impl Usage {
    /// Figures of another form are none.
    pub fn read(usage: &Value) -> Self {
        let tokens = |name| usage.get(name).and_then(Value::as_u64);
        Self {
            input_tokens: tokens("input_tokens"),
            output_tokens: tokens("output_tokens"),
            cache_written: tokens("cache_creation_input_tokens"),
            cached_for_an_hour: usage
                .pointer("/cache_creation/ephemeral_1h_input_tokens")
                .and_then(Value::as_u64),
            cache_read: tokens("cache_read_input_tokens"),
        }
    }

    /// All of them as tokens of the prompt and of the answer.
    pub fn used(self) -> TokenUse {
        let written = self.cache_written.unwrap_or(0);
        let written_hour = self.cached_for_an_hour.unwrap_or(0);
        let cache = CacheTokens {
            read: self.cache_read.unwrap_or(0),
            written: written.saturating_sub(written_hour),
            written_hour,
        };
        TokenUse::new(self.prompt(), self.output_tokens.unwrap_or(0)).with_cache(cache)
    }

    fn prompt(self) -> u64 {
        let parts = [self.input_tokens, self.cache_read, self.cache_written];
        parts.into_iter().flatten().fold(0, u64::saturating_add)
    }

    /// The figures grow in a stream, and some servers send them only at its end.
    pub fn note(&mut self, more: Self) {
        self.input_tokens = self.input_tokens.max(more.input_tokens);
        self.output_tokens = self.output_tokens.max(more.output_tokens);
        self.cache_written = self.cache_written.max(more.cache_written);
        self.cached_for_an_hour = self.cached_for_an_hour.max(more.cached_for_an_hour);
        self.cache_read = self.cache_read.max(more.cache_read);
    }

    pub(super) fn openai(&self) -> Value {
        let read = self.cache_read.unwrap_or(0);
        let written = self.cache_written.unwrap_or(0);
        let prompt = self.prompt();
        let answer = self.output_tokens.unwrap_or(0);
        let mut details = json!({"cached_tokens": read, "cache_creation_tokens": written});
        if let Some(hour @ 1..) = self.cached_for_an_hour {
            details["cache_creation_1h_tokens"] = hour.into();
        }
        json!({
            "prompt_tokens": prompt,
            "completion_tokens": answer,
            "total_tokens": prompt.saturating_add(answer),
            "prompt_tokens_details": details,
        })
    }
}

impl Message {
    /// Moves the texts: `json!` would copy each into every object around it.
    pub(super) fn into_completion(self) -> Value {
        let (mut text, mut thoughts, mut calls) = (String::new(), String::new(), Vec::new());
        for block in self.content {
            match block {
                Block::Text { text: more } => add(&mut text, more),
                Block::Thinking { thinking } => add(&mut thoughts, thinking),
                Block::ToolUse { id, name, input } => {
                    let function = [("name", name), ("arguments", arguments(&input))];
                    calls.push(Value::from_iter([
                        ("id", Value::from(id)),
                        ("type", "function".into()),
                        ("function", Value::from_iter(function)),
                    ]));
                }
                Block::Other => {}
            }
        }
        let mut message = Value::from_iter([("role", "assistant".to_owned()), ("content", text)]);
        if !thoughts.is_empty() {
            message["reasoning_content"] = thoughts.into();
        }
        if !calls.is_empty() {
            message["tool_calls"] = calls.into();
        }
        let mut choice = Value::from_iter([
            ("index", Value::from(0)),
            ("message", message),
            ("finish_reason", self.end.finish().into()),
        ]);
        if let Some(stop) = self.end.stop() {
            choice["stop_reason"] = stop.into();
        }
        Value::from_iter([
            ("id", Value::from(self.id)),
            ("object", "chat.completion".into()),
            ("created", Timestamp::now().as_second().into()),
            ("model", self.model.into()),
            ("choices", vec![choice].into()),
            ("usage", self.usage.openai()),
        ])
    }
}

fn add(text: &mut String, more: String) {
    match text.is_empty() {
        true => *text = more,
        false => text.push_str(&more),
    }
}

pub(super) fn arguments(input: &Value) -> String {
    if input.is_null() {
        "{}".to_owned()
    } else {
        input.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_the_parts_of_one_message() {
        let message = json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
                {"type": "redacted_thinking", "data": "…"},
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"at": 1}},
                {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
            ],
            "stop_reason": "tool_use", "stop_sequence": null,
            "usage": {"input_tokens": 3, "cache_creation_input_tokens": 2, "cache_read_input_tokens": 7, "output_tokens": 4},
        });
        let message: Message = serde_json::from_value(message).unwrap();
        let mut reply = message.into_completion();
        assert!(reply["created"].take().as_u64() > Some(1_700_000_000));
        let function = json!({"name": "look", "arguments": "{\"at\":1}"});
        assert_eq!(
            reply,
            json!({
                "id": "msg_1", "object": "chat.completion", "created": null, "model": "claude-x",
                "choices": [{"index": 0, "message": {
                    "role": "assistant", "content": "I look.", "reasoning_content": "hm",
                    "tool_calls": [{"id": "toolu_1", "type": "function", "function": function}],
                }, "finish_reason": "tool_calls"}],
                "usage": {
                    "prompt_tokens": 12, "completion_tokens": 4, "total_tokens": 16,
                    "prompt_tokens_details": {"cached_tokens": 7, "cache_creation_tokens": 2},
                },
            })
        );
    }

    #[test]
    fn cached_tokens_are_the_same_in_both_dialects() {
        let usage = json!({"input_tokens": 3, "output_tokens": 1, "cache_read_input_tokens": 7, "cache_creation_input_tokens": 11,
            "cache_creation": {"ephemeral_5m_input_tokens": 6, "ephemeral_1h_input_tokens": 5}});
        let usage = Usage::read(&usage);
        let cache = CacheTokens {
            read: 7,
            written: 6,
            written_hour: 5,
        };
        assert_eq!(usage.used(), TokenUse::new(21, 1).with_cache(cache));
        let mut openai = usage.openai();
        openai.as_object_mut().unwrap().remove("total_tokens");
        assert_eq!(TokenUse::of_usage(&openai), Some(usage.used()));
        let response = json!({"input_tokens": 21, "output_tokens": 1, "input_tokens_details": openai["prompt_tokens_details"]});
        assert_eq!(TokenUse::of_response(&response), usage.used());
    }

    #[test]
    fn the_stop_reason_follows_the_cause() {
        for (reason, stop, finish) in [
            ("end_turn", None, "stop"),
            ("stop_sequence", Some("END"), "stop"),
            ("max_tokens", None, "length"),
            ("model_context_window_exceeded", None, "length"),
            ("refusal", None, "content_filter"),
            ("pause_turn", None, "stop"),
        ] {
            let message = json!({"stop_reason": reason, "stop_sequence": stop});
            let message: Message = serde_json::from_value(message).unwrap();
            let reply = message.into_completion();
            assert_eq!(reply["choices"][0]["finish_reason"], finish);
            assert_eq!(
                reply["choices"][0]
                    .get("stop_reason")
                    .and_then(Value::as_str),
                stop
            );
        }
    }
}

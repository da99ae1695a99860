//! An answer in Anthropic's form: complete here, as events in [`super::stream`].

use super::{calls::AnswerCalls, content::LeftOut};
use serde_json::{Value, json};
use tierbar_inference::{
    ask::{ToolCall, Usage},
    calls,
    files::FilesSent,
};
use uuid::Uuid;

/// Of reasoning. Without one, clients take it for a part, and some drop it. It is never checked.
pub(super) const SIGNATURE: &str = "unsigned";

/// One answer while it is rendered.
#[derive(Debug, Default)]
pub struct AnswerWriter {
    pub(super) id: String,
    /// The requested one, until the server names its own.
    pub(super) model: String,
    /// The block that is open, and what it holds.
    pub(super) open: Option<Kind>,
    /// How many blocks have begun.
    pub(super) blocks: usize,
    pub(super) held: AnswerCalls,
    pub(super) begun: bool,
    /// Why the answer ended, in OpenAI's words.
    pub(super) finish: String,
    /// The stop string that ended it.
    pub(super) stop: Option<String>,
    pub(super) usage: Usage,
    /// The chain's report.
    pub(super) chain: Option<Value>,
    /// What of the request the model could not read.
    pub(super) left_out: Vec<LeftOut>,
    pub(super) files_sent: FilesSent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Thinking,
    /// The call of this number.
    Tool(usize),
}

impl AnswerWriter {
    pub(super) fn new(model: String) -> Self {
        Self {
            id: format!("msg_{}", Uuid::new_v4().simple()),
            model,
            ..Self::default()
        }
    }

    fn stop_reason(&self) -> &'static str {
        match self.finish.as_str() {
            "length" => "max_tokens",
            "tool_calls" | "function_call" => "tool_use",
            "content_filter" => "refusal",
            _ if self.stop.is_some() => "stop_sequence",
            _ => "end_turn",
        }
    }

    /// Why and by which string the answer ended.
    pub(super) fn end(&self) -> Value {
        json!({"stop_reason": self.stop_reason(), "stop_sequence": self.stop})
    }

    pub(super) fn message(&self, content: Vec<Value>, ended: bool) -> Value {
        let mut message = json!({
            "id": self.id,
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": null,
            "stop_reason": ended.then(|| self.stop_reason()),
            "stop_sequence": self.stop,
            "usage": self.usage(),
        });
        // In `json!` it would be copied.
        message["content"] = content.into();
        if let Some(chain) = &self.chain {
            message["tierbar"] = chain.clone();
        }
        let left_out = LeftOut::named(&self.left_out, self.files_sent.get());
        if !left_out.is_empty() {
            message["tierbar"]["left_out"] = json!(left_out);
        }
        message
    }

    /// Anthropic counts what was read from a cache, or written to one, apart.
    pub(super) fn usage(&self) -> Value {
        let (cached, written) = (self.usage.cached_tokens, self.usage.cache_written_tokens);
        json!({
            "input_tokens": self.usage.prompt_tokens - cached - written,
            "cache_creation_input_tokens": written,
            "cache_read_input_tokens": cached,
            "output_tokens": self.usage.completion_tokens,
        })
    }
}

pub(super) fn tool_use(call: ToolCall, taken: &mut usize) -> Value {
    // A model may write what is no JSON: the client gets it as it stands.
    let input = calls::arguments(&call.arguments, taken);
    let input = input.unwrap_or_else(|| json!({"arguments": call.arguments}));
    Value::from_iter([
        ("type", Value::from("tool_use")),
        ("id", call_id(call.id).into()),
        ("name", call.name.into()),
        ("input", input),
    ])
}

pub(super) fn call_id(id: Option<String>) -> String {
    id.filter(|id| !id.is_empty())
        .unwrap_or_else(|| format!("toolu_{}", Uuid::new_v4().simple()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{respond::Dialect, testing::gathered};

    fn whole(answer: Value) -> Value {
        let reply = AnswerWriter::new("fast".to_owned()).whole(gathered(&answer));
        let mut reply: Value = serde_json::from_str(&reply).unwrap();
        assert!(reply["id"].take().as_str().unwrap().starts_with("msg_"));
        reply
    }

    #[test]
    fn reasoning_text_and_calls_are_blocks_in_this_order() {
        let call =
            |arguments| json!({"id": "c", "function": {"name": "look", "arguments": arguments}});
        let reply = whole(json!({
            "model": "small",
            "choices": [{"message": {"content": "I look.", "reasoning_content": "hm", "tool_calls": [
                call("{\"at\":1}"), call(""), call("{broken"),
            ]}, "finish_reason": "tool_calls"}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 7}},
        }));
        let used =
            |input: Value| json!({"type": "tool_use", "id": "c", "name": "look", "input": input});
        assert_eq!(
            reply,
            json!({
                "id": null, "type": "message", "role": "assistant", "model": "small",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "unsigned"},
                    {"type": "text", "text": "I look."},
                    used(json!({"at": 1})), used(json!({})), used(json!({"arguments": "{broken"})),
                ],
                "stop_reason": "tool_use", "stop_sequence": null,
                "usage": {"input_tokens": 3, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 7, "output_tokens": 4},
            })
        );
    }

    #[test]
    fn an_answer_with_calls_ends_for_their_sake() {
        let call = json!({"id": "c", "function": {"name": "look", "arguments": "{}"}});
        let message = json!({"content": null, "tool_calls": [call]});
        for (finish, reason) in [("stop", "tool_use"), ("length", "max_tokens")] {
            let answer = json!({"choices": [{"message": message, "finish_reason": finish}]});
            assert_eq!(whole(answer)["stop_reason"], reason);
        }
    }

    #[test]
    fn what_was_left_out_of_the_request_is_named() {
        let answer = json!({"choices": [{"message": {"content": "a"}, "finish_reason": "stop"}]});
        let left_out = vec!["tools[0]: web_search_20250305".to_owned()];
        let left = |is_file| {
            let what = left_out[0].clone();
            vec![LeftOut { what, is_file }]
        };
        let mut writer = AnswerWriter::new("fast".to_owned());
        writer.left_out = left(false);
        let reply: Value = serde_json::from_str(&writer.whole(gathered(&answer))).unwrap();
        assert_eq!(reply["tierbar"], json!({"left_out": left_out}));
        let mut writer = AnswerWriter::new("fast".to_owned());
        writer.left_out = left(true);
        writer.files_sent.set(true);
        let reply: Value = serde_json::from_str(&writer.whole(gathered(&answer))).unwrap();
        assert_eq!(reply.get("tierbar"), None);
        assert_eq!(whole(answer).get("tierbar"), None);
    }

    #[test]
    fn the_stop_reason_follows_the_cause() {
        for (finish, stop, reason) in [
            ("stop", json!(null), "end_turn"),
            ("stop", json!("END"), "stop_sequence"),
            ("stop", json!(7), "end_turn"),
            ("length", json!(null), "max_tokens"),
            ("content_filter", json!(null), "refusal"),
        ] {
            let choice =
                json!({"message": {"content": "a"}, "finish_reason": finish, "stop_reason": stop});
            let reply = whole(json!({"choices": [choice]}));
            assert_eq!(reply["stop_reason"], reason);
            assert_eq!(
                reply["stop_sequence"].is_string(),
                reason == "stop_sequence"
            );
            assert_eq!(reply["model"], "fast");
        }
    }
}

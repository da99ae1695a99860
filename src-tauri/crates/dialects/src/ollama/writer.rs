//! An answer in Ollama's form: complete here, line by line in [`super::stream`].

use jiff::Timestamp;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tierbar_inference::{
    ask::{ToolCall, Usage},
    calls,
};

/// Where an answer's text stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// In a `message`.
    Chat,
    /// In `response`.
    Generate,
}

/// One answer while it is rendered.
#[derive(Debug)]
pub(super) struct AnswerWriter {
    shape: Shape,
    /// The requested one.
    model: String,
    begun: Instant,
    pub(super) calls: Vec<ToolCall>,
    pub(super) finish: Option<String>,
    pub(super) usage: Usage,
    /// The chain's report.
    pub(super) chain: Option<Value>,
    /// Of tokens whose text has not arrived.
    pub(super) probabilities: Option<Value>,
}

/// What a line contains.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Content {
    pub(super) text: String,
    pub(super) thinking: String,
    pub(super) calls: Vec<Value>,
    /// The memory of their arguments.
    pub(super) arguments: usize,
    pub(super) probabilities: Option<Value>,
}

impl AnswerWriter {
    pub(super) fn new(shape: Shape, model: &str, begun: Instant) -> Self {
        Self {
            shape,
            model: model.to_owned(),
            begun,
            calls: Vec::new(),
            finish: None,
            usage: Usage::default(),
            chain: None,
            probabilities: None,
        }
    }

    pub(super) fn line(&self, content: Content) -> Value {
        let mut line =
            json!({"model": self.model.as_str(), "created_at": Timestamp::now().to_string()});
        let place = match self.shape {
            Shape::Chat => {
                line["message"] = json!({"role": "assistant"});
                line["message"]["content"] = content.text.into();
                &mut line["message"]
            }
            Shape::Generate => {
                line["response"] = content.text.into();
                &mut line
            }
        };
        if !content.thinking.is_empty() {
            place["thinking"] = content.thinking.into();
        }
        if !content.calls.is_empty() {
            place["tool_calls"] = content.calls.into();
        }
        line["done"] = false.into();
        if let Some(probabilities) = content.probabilities {
            line["logprobs"] = probabilities;
        }
        line
    }

    /// The last line, with the figures and the chain's report.
    pub(super) fn last(&self, content: Content) -> Value {
        let mut line = self.ended(content, self.reason());
        for (name, figure) in self.figures() {
            if let Some(figure) = figure {
                line[name] = figure.into();
            }
        }
        if let Some(chain) = &self.chain {
            line["tierbar"] = chain.clone();
        }
        line
    }

    /// The last line without figures, which is the one of a request that only loads or unloads a model.
    pub(super) fn ended(&self, content: Content, reason: &str) -> Value {
        let mut line = self.line(content);
        line["done"] = true.into();
        line["done_reason"] = reason.into();
        line
    }

    fn reason(&self) -> &'static str {
        match self.finish.as_deref() {
            Some("length") => "length",
            _ => "stop",
        }
    }

    /// The time that was neither prefill nor decode was spent loading, or waiting.
    fn figures(&self) -> [(&'static str, Option<u64>); 6] {
        let (total, usage) = (self.begun.elapsed(), self.usage);
        let times = usage.prefill_seconds.zip(usage.decode_seconds);
        let times = times.map(|(prefill, decode)| (duration(prefill), duration(decode)));
        let rest = |(prefill, decode)| total.saturating_sub(prefill).saturating_sub(decode);
        let counted = |tokens| usage.is_counted().then_some(tokens);
        [
            ("total_duration", Some(nanoseconds(total))),
            ("load_duration", times.map(rest).map(nanoseconds)),
            ("prompt_eval_count", counted(usage.prompt_tokens)),
            (
                "prompt_eval_duration",
                times.map(|(prefill, _)| nanoseconds(prefill)),
            ),
            ("eval_count", counted(usage.completion_tokens)),
            (
                "eval_duration",
                times.map(|(_, decode)| nanoseconds(decode)),
            ),
        ]
    }
}

impl Content {
    /// Adds a call. One whose arguments are no object, such as one that was cut off, becomes a part of the text.
    pub(super) fn call(&mut self, call: ToolCall) {
        let Some(arguments) = calls::arguments(&call.arguments, &mut self.arguments) else {
            return self.text.push_str(&call.arguments);
        };
        let index = self.calls.len();
        let mut rendered =
            json!({"function": {"index": index, "name": call.name, "arguments": arguments}});
        if let Some(id) = call.id.filter(|id| !id.is_empty()) {
            rendered["id"] = id.into();
        }
        self.calls.push(rendered);
    }
}

pub(super) fn duration(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

pub(super) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{respond::Dialect, testing::gathered};

    fn whole(shape: Shape, answer: Value) -> Value {
        let writer = AnswerWriter::new(shape, "fast", Instant::now());
        let reply = writer.whole(gathered(&answer));
        let mut reply: Value = serde_json::from_str(&reply).unwrap();
        reply["created_at"].take();
        reply
    }

    #[test]
    fn reasoning_text_and_calls_stand_in_the_message() {
        let call = |id: Option<&str>, arguments: &str| json!({"id": id, "function": {"name": "look", "arguments": arguments}});
        let reply = whole(
            Shape::Chat,
            json!({
                "choices": [{"message": {"content": "I look.", "reasoning_content": "hm", "tool_calls": [
                    call(Some("c"), "{\"at\":1}"), call(None, ""), call(None, "{\"cut"),
                ]}, "finish_reason": "tool_calls"}],
                "usage": {"prompt_tokens": 10, "completion_tokens": 4},
            }),
        );
        let used = |index: u64, arguments: Value| json!({"index": index, "name": "look", "arguments": arguments});
        assert_eq!(
            reply["message"],
            json!({
                "role": "assistant", "content": "I look.{\"cut", "thinking": "hm",
                "tool_calls": [{"function": used(0, json!({"at": 1})), "id": "c"}, {"function": used(1, json!({}))}],
            })
        );
        assert_eq!(reply["done"], true);
        assert_eq!(reply["done_reason"], "stop");
        assert_eq!(reply["prompt_eval_count"], 10);
        assert_eq!(reply["eval_count"], 4);
        assert!(reply["total_duration"].is_u64());
        // They were not reported.
        assert_eq!(reply["load_duration"], Value::Null);
        assert_eq!(reply["eval_duration"], Value::Null);
    }

    #[test]
    fn a_completion_has_its_text_and_figures_in_nanoseconds() {
        let reply = whole(
            Shape::Generate,
            json!({
                "choices": [{"text": "Paris", "finish_reason": "length"}],
                "timings": {"prompt_ms": 2.5, "predicted_ms": 0.25},
            }),
        );
        assert_eq!(reply["response"], "Paris");
        assert_eq!(reply["message"], Value::Null);
        assert_eq!(reply["done_reason"], "length");
        assert_eq!(reply["prompt_eval_duration"], 2_500_000);
        assert_eq!(reply["eval_duration"], 250_000);
        assert_eq!(reply["prompt_eval_count"], Value::Null);
        assert!(reply["load_duration"].is_u64());
    }

    #[test]
    fn an_answer_has_its_probabilities() {
        let likely = json!([{"token": "Paris", "logprob": -0.5, "top_logprobs": []}]);
        let choice = json!({"message": {"content": "Paris"}, "logprobs": {"content": likely}, "finish_reason": "stop"});
        let reply = whole(Shape::Chat, json!({"choices": [choice]}));
        assert_eq!(reply["logprobs"], likely);
    }

    #[test]
    fn figures_that_cannot_be_are_nothing() {
        for wrong in [-1.0, f64::NAN, f64::INFINITY, 1e300] {
            assert_eq!(duration(wrong), Duration::ZERO);
        }
    }
}

//! An answer in Ollama's words: whole here, line by line in [`super::stream`].

use super::probabilities;
use crate::inference::{
    calls::Calls,
    wire::{Completion, Timings, ToolCall, Usage},
};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use std::time::{Duration, Instant};

/// Where an answer's words stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// In a `message`.
    Chat,
    /// In `response`.
    Generate,
}

/// One answer as it is told.
#[derive(Debug)]
pub(super) struct AnswerWriter {
    shape: Shape,
    /// What the client asked for.
    model: String,
    begun: Instant,
    pub(super) numbers: Calls,
    pub(super) calls: Vec<Call>,
    pub(super) finish: Option<String>,
    pub(super) usage: Option<Usage>,
    pub(super) timings: Option<Timings>,
    /// What the chain that was asked says of it.
    pub(super) chain: Option<Value>,
}

/// A call of a tool, as far as it has come.
#[derive(Debug, Default)]
pub(super) struct Call {
    pub(super) id: Option<String>,
    pub(super) name: String,
    pub(super) arguments: String,
}

/// What a line tells.
#[derive(Debug, Default)]
pub(super) struct Words {
    pub(super) content: String,
    pub(super) thinking: String,
    pub(super) calls: Vec<Value>,
    pub(super) probabilities: Option<Value>,
}

impl Words {
    pub(super) fn is_empty(&self) -> bool {
        self.content.is_empty()
            && self.thinking.is_empty()
            && self.calls.is_empty()
            && self.probabilities.is_none()
    }
}

impl AnswerWriter {
    pub(super) fn new(shape: Shape, model: &str, begun: Instant) -> Self {
        Self {
            shape,
            model: model.to_owned(),
            begun,
            numbers: Calls::default(),
            calls: Vec::new(),
            finish: None,
            usage: None,
            timings: None,
            chain: None,
        }
    }

    pub(super) fn line(&self, words: Words) -> Map<String, Value> {
        let Words {
            content,
            thinking,
            calls,
            probabilities,
        } = words;
        let mut rendered = Map::new();
        let mut line = Map::new();
        line.insert("model".to_owned(), self.model.as_str().into());
        line.insert("created_at".to_owned(), Timestamp::now().to_string().into());
        if !thinking.is_empty() {
            rendered.insert("thinking".to_owned(), thinking.into());
        }
        if !calls.is_empty() {
            rendered.insert("tool_calls".to_owned(), calls.into());
        }
        match self.shape {
            Shape::Chat => {
                let mut message = Map::new();
                message.insert("role".to_owned(), "assistant".into());
                message.insert("content".to_owned(), content.into());
                message.append(&mut rendered);
                line.insert("message".to_owned(), message.into());
            }
            Shape::Generate => {
                line.insert("response".to_owned(), content.into());
                line.append(&mut rendered);
            }
        }
        line.insert("done".to_owned(), false.into());
        if let Some(probabilities) = probabilities {
            line.insert("logprobs".to_owned(), probabilities);
        }
        line
    }

    /// The last line, with what it took and who was asked in vain.
    pub(super) fn last(&self, words: Words) -> Map<String, Value> {
        let mut line = self.ended(words, self.reason());
        line.extend(self.figures());
        if let Some(chain) = &self.chain {
            line.insert("tierbar".to_owned(), chain.clone());
        }
        line
    }

    /// A model was loaded or unloaded, and nothing said.
    pub(super) fn silent(&self, reason: &str) -> Map<String, Value> {
        self.ended(Words::default(), reason)
    }

    fn ended(&self, words: Words, reason: &str) -> Map<String, Value> {
        let mut line = self.line(words);
        line.insert("done".to_owned(), true.into());
        line.insert("done_reason".to_owned(), reason.into());
        line
    }

    fn reason(&self) -> &'static str {
        match self.finish.as_deref() {
            Some("length") => "length",
            _ => "stop",
        }
    }

    /// What was neither reading nor writing was loading, or waiting for its turn.
    fn figures(&self) -> Map<String, Value> {
        let mut figures = Map::new();
        let mut put = |name: &str, value: u64| {
            figures.insert(name.to_owned(), value.into());
        };
        let total = self.begun.elapsed();
        put("total_duration", nanoseconds(total));
        let timings = self
            .timings
            .map(|timings| (took(timings.prompt_ms), took(timings.predicted_ms)));
        if let Some((read, written)) = timings {
            let rest = total.saturating_sub(read).saturating_sub(written);
            put("load_duration", nanoseconds(rest));
        }
        if let Some(usage) = self.usage {
            put("prompt_eval_count", usage.prompt_tokens);
        }
        if let Some((read, _)) = timings {
            put("prompt_eval_duration", nanoseconds(read));
        }
        if let Some(usage) = self.usage {
            put("eval_count", usage.completion_tokens);
        }
        if let Some((_, written)) = timings {
            put("eval_duration", nanoseconds(written));
        }
        figures
    }

    pub(super) fn take_whole(mut self, answer: Completion) -> Value {
        self.usage = answer.usage;
        self.timings = answer.timings;
        self.chain = answer.tierbar;
        let choice = answer.choices.into_iter().next().unwrap_or_default();
        self.finish = choice.finish_reason;
        let mut message = choice.message;
        let mut words = Words {
            thinking: message.thoughts().unwrap_or_default(),
            content: message.content.or(choice.text).unwrap_or_default(),
            calls: Vec::new(),
            probabilities: probabilities::convert(choice.logprobs),
        };
        for call in message.tool_calls.unwrap_or_default() {
            words.called(Call::of(call));
        }
        self.last(words).into()
    }
}

impl Call {
    pub(super) fn of(call: ToolCall) -> Self {
        Self {
            id: call.id,
            name: call.function.name.unwrap_or_default(),
            arguments: call.function.arguments.unwrap_or_default(),
        }
    }
}

impl Words {
    /// A call whose arguments are no object, such as one that was cut off, is no call: it stands among the words.
    pub(super) fn called(&mut self, call: Call) {
        let arguments = match serde_json::from_str(&call.arguments) {
            Ok(arguments @ Value::Object(_)) => arguments,
            _ if call.arguments.trim().is_empty() => json!({}),
            _ => return self.content.push_str(&call.arguments),
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

fn took(milliseconds: f64) -> Duration {
    Duration::try_from_secs_f64(milliseconds / 1000.0).unwrap_or_default()
}

pub(super) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(shape: Shape, answer: Value) -> Value {
        let writer = AnswerWriter::new(shape, "fast", Instant::now());
        let mut reply = writer.take_whole(serde_json::from_value(answer).unwrap());
        reply["created_at"].take();
        reply
    }

    #[test]
    fn thoughts_words_and_calls_stand_in_the_message() {
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
        // Nobody has told them.
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
    fn figures_that_cannot_be_are_nothing() {
        for wrong in [-1.0, f64::NAN, f64::INFINITY, 1e300] {
            assert_eq!(took(wrong), Duration::ZERO);
        }
    }
}

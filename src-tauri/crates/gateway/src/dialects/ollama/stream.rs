//! An answer as lines of JSON. While a tier loads nothing is sent: the format has no word for it.

use super::{
    failure, probabilities,
    writer::{AnswerWriter, Call, Words},
};
use crate::{
    dialects::translate::Dialect,
    inference::wire::{Chunk, Completion, ToolCall},
};
use serde_json::{Map, Value};
use tierbar_core::Error;

/// No call of a tool comes near it; what goes on beyond is let go.
const LONGEST_CALL: usize = 16 << 20;

impl Dialect for AnswerWriter {
    const STREAM: &'static str = "application/x-ndjson";

    fn chunk(&mut self, chunk: Chunk) -> String {
        self.usage = chunk.usage.or(self.usage);
        self.timings = chunk.timings.or(self.timings);
        self.chain = self.chain.take().or(chunk.tierbar);
        let Some(choice) = chunk.choices.into_iter().next() else {
            return String::new();
        };
        self.finish = choice.finish_reason.or(self.finish.take());
        let mut delta = choice.delta;
        for piece in delta.tool_calls.take().unwrap_or_default() {
            self.call(piece);
        }
        let words = Words {
            thinking: delta.thoughts().unwrap_or_default(),
            content: delta.content.or(choice.text).unwrap_or_default(),
            calls: Vec::new(),
            probabilities: probabilities::convert(choice.logprobs),
        };
        if words.is_empty() {
            return String::new();
        }
        line(self.line(words))
    }

    fn end(&mut self) -> String {
        let mut words = Words::default();
        for call in std::mem::take(&mut self.calls) {
            words.called(call);
        }
        let mut out = String::new();
        if !words.is_empty() {
            out = line(self.line(words));
        }
        out + &line(self.last(Words::default()))
    }

    fn failed(&mut self, error: &Error) -> String {
        format!("{}\n", failure::error_body(error))
    }

    fn whole(self, answer: Completion) -> Value {
        self.take_whole(answer)
    }
}

impl AnswerWriter {
    /// Ollama tells a call when it is whole.
    fn call(&mut self, piece: ToolCall) {
        let Some(number) = self.numbers.number(&piece) else {
            return;
        };
        let Some(call) = self.calls.get_mut(number) else {
            self.calls.push(Call::of(piece));
            return;
        };
        let more = piece.function.arguments.unwrap_or_default();
        if call.arguments.len() + more.len() <= LONGEST_CALL {
            call.arguments.push_str(&more);
        }
    }
}

fn line(line: Map<String, Value>) -> String {
    format!("{}\n", Value::Object(line))
}

#[cfg(test)]
mod tests {
    use super::{super::writer::Shape, *};
    use serde_json::json;
    use std::time::Instant;
    use tierbar_core::Code;

    fn render(shape: Shape, chunks: Vec<Value>) -> Vec<Value> {
        let mut writer = AnswerWriter::new(shape, "fast", Instant::now());
        let mut out = String::new();
        for chunk in chunks {
            out += &writer.chunk(serde_json::from_value(chunk).unwrap());
        }
        out += &writer.end();
        out.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    fn delta(delta: Value) -> Value {
        json!({"choices": [{"delta": delta, "finish_reason": null}]})
    }

    #[test]
    fn each_piece_is_a_line_and_the_last_has_the_figures() {
        let lines = render(
            Shape::Chat,
            vec![
                delta(json!({"role": "assistant", "content": ""})),
                delta(json!({"reasoning_content": "hm"})),
                delta(json!({"content": "Paris"})),
                json!({"choices": [{"delta": {}, "finish_reason": "length"}], "timings": {"prompt_ms": 3.0, "predicted_ms": 2.0}}),
                json!({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 9}}),
            ],
        );
        let messages: Vec<_> = lines.iter().map(|line| line["message"].clone()).collect();
        assert_eq!(
            messages,
            [
                json!({"role": "assistant", "content": "", "thinking": "hm"}),
                json!({"role": "assistant", "content": "Paris"}),
                json!({"role": "assistant", "content": ""}),
            ]
        );
        let done: Vec<_> = lines.iter().map(|line| line["done"] == true).collect();
        assert_eq!(done, [false, false, true]);
        let last = &lines[2];
        assert_eq!(last["done_reason"], "length");
        assert_eq!(
            (&last["prompt_eval_count"], &last["eval_count"]),
            (&json!(5), &json!(9))
        );
        assert_eq!(last["prompt_eval_duration"], 3_000_000);
        assert!(
            lines
                .iter()
                .all(|line| line["model"] == "fast" && line["created_at"].is_string())
        );
    }

    #[test]
    fn calls_are_told_whole_before_the_last_line() {
        let piece = |index: usize, name: Option<&str>, arguments: &str| {
            delta(
                json!({"tool_calls": [{"index": index, "function": {"name": name, "arguments": arguments}}]}),
            )
        };
        let lines = render(
            Shape::Chat,
            vec![
                piece(0, Some("look"), "{\"at\""),
                piece(1, Some("ask"), ""),
                piece(0, None, ":1}"),
            ],
        );
        assert_eq!(lines.len(), 2);
        assert_eq!(
            lines[0]["message"]["tool_calls"],
            json!([
                {"function": {"index": 0, "name": "look", "arguments": {"at": 1}}},
                {"function": {"index": 1, "name": "ask", "arguments": {}}},
            ])
        );
        assert_eq!(lines[0]["done"], false);
        assert_eq!(lines[1]["message"]["content"], "");
    }

    #[test]
    fn calls_that_are_not_numbered_are_told_apart_by_their_ids() {
        let piece = |id: &str| {
            let function = json!({"name": "look", "arguments": "{\"at\":1}"});
            delta(json!({"tool_calls": [{"id": id, "function": function}]}))
        };
        let lines = render(Shape::Chat, vec![piece("a"), piece("b")]);
        let message = &lines[0]["message"];
        assert_eq!(message["tool_calls"].as_array().unwrap().len(), 2);
        assert_eq!(message["tool_calls"][1]["id"], "b");
        assert_eq!(message["content"], "");
    }

    #[test]
    fn a_completions_text_is_its_response() {
        let text = json!({"choices": [{"text": " 10,", "logprobs": {
            "tokens": [" 10", ","], "token_logprobs": [-0.5, null], "top_logprobs": [{" 10": -0.5}, null],
        }}]});
        let lines = render(Shape::Generate, vec![text]);
        assert_eq!(lines[0]["response"], " 10,");
        assert_eq!(lines[0]["logprobs"][0]["token"], " 10");
        assert_eq!(lines[1]["response"], "");
    }

    #[test]
    fn a_failure_is_a_line_and_waiting_is_silent() {
        let mut writer = AnswerWriter::new(Shape::Chat, "fast", Instant::now());
        assert_eq!(writer.waiting(), "");
        let failed = writer.failed(&Error::new(Code::WorkerCrashed, "it died"));
        assert_eq!(
            failed,
            "{\"error\":\"it died\",\"code\":\"worker_crashed\"}\n"
        );
    }
}

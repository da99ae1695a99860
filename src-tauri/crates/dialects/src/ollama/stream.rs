//! An answer as lines of JSON. While a tier loads nothing is sent: the format has no line for it.

use super::{
    failure, probabilities,
    writer::{AnswerWriter, Content},
};
use crate::respond::Dialect;
use tierbar_inference::ask::{CompleteAnswer, Event, ToolCall, ToolCallPart};

/// Bytes. No tool call comes near it; the rest of a longer one is dropped.
const LONGEST_CALL: usize = 16 << 20;

impl Dialect for AnswerWriter {
    const STREAM: &'static str = "application/x-ndjson";
    type Rendered = String;

    fn event(&mut self, event: Event) -> String {
        match event {
            Event::Chain(report) => {
                self.chain.get_or_insert(report);
                String::new()
            }
            Event::Usage(usage) => {
                self.usage = usage;
                String::new()
            }
            Event::LogProbs(more) => {
                probabilities::append(&mut self.probabilities, more);
                String::new()
            }
            Event::Reasoning(thinking) => self.piece(Content {
                thinking,
                ..Content::default()
            }),
            Event::Text(text) => self.piece(Content {
                text,
                ..Content::default()
            }),
            Event::ToolCall(part) => {
                self.call(part);
                String::new()
            }
            Event::Finished { reason, .. } => {
                self.finish = Some(reason);
                self.end()
            }
            Event::Failed(failed) => format!("{}\n", failure::error_body(&failed.error)),
            Event::Started(_)
            | Event::Passed(_)
            | Event::Progress(_)
            | Event::Model(_)
            | Event::Sampling(_) => String::new(),
        }
    }

    fn whole(mut self, answer: CompleteAnswer) -> String {
        self.usage = answer.usage;
        self.chain = answer.chain;
        self.finish = Some(answer.reason);
        let mut content = Content {
            thinking: answer.reasoning,
            text: answer.text,
            ..Content::default()
        };
        for more in answer.logprobs {
            probabilities::append(&mut content.probabilities, more);
        }
        for call in answer.calls {
            content.call(call);
        }
        self.last(content).to_string()
    }
}

impl AnswerWriter {
    fn piece(&mut self, content: Content) -> String {
        let probabilities = self.probabilities.take();
        let content = Content {
            probabilities,
            ..content
        };
        format!("{}\n", self.line(content))
    }

    fn end(&mut self) -> String {
        let mut content = Content {
            probabilities: self.probabilities.take(),
            ..Content::default()
        };
        for call in std::mem::take(&mut self.calls) {
            content.call(call);
        }
        let mut out = String::new();
        if content != Content::default() {
            out = format!("{}\n", self.line(content));
        }
        out + &format!("{}\n", self.last(Content::default()))
    }

    /// Ollama sends a call when it is complete.
    fn call(&mut self, part: ToolCallPart) {
        if let Some(call) = ToolCall::of(&mut self.calls, part.index)
            && call.arguments.len() + part.arguments.len() <= LONGEST_CALL
        {
            call.add(part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::writer::Shape, *};
    use crate::testing::{events_of, failed};
    use serde_json::{Value, json};
    use std::time::Instant;
    use tierbar_core::{Code, Error};
    use tierbar_inference::ask::Stage;

    fn render(shape: Shape, chunks: Vec<Value>) -> Vec<Value> {
        let mut writer = AnswerWriter::new(shape, "fast", Instant::now());
        let events = events_of(chunks).into_iter();
        let out: String = events.map(|event| writer.event(event)).collect();
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
    fn each_line_has_the_probabilities_of_its_text() {
        let likely = |token: &str| json!([{"token": token, "logprob": -0.5, "top_logprobs": []}]);
        let piece = |token: &str| json!({"choices": [{"delta": {"content": token}, "logprobs": {"content": likely(token)}}]});
        let lines = render(
            Shape::Chat,
            vec![
                piece("Pa"),
                piece("ris"),
                json!({"choices": [{"delta": {}, "finish_reason": "stop"}]}),
            ],
        );
        let tokens: Vec<_> = lines.iter().map(|line| &line["logprobs"]).collect();
        assert_eq!(tokens, [&likely("Pa"), &likely("ris"), &Value::Null]);
    }

    #[test]
    fn complete_calls_come_before_the_last_line() {
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
    fn calls_without_numbers_differ_by_their_ids() {
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
        assert_eq!(writer.event(Event::Progress(Stage::Load)), "");
        let failed = writer.event(failed(Error::new(Code::WorkerCrashed, "it died")));
        assert_eq!(
            failed,
            "{\"error\":\"it died\",\"code\":\"worker_crashed\"}\n"
        );
    }
}

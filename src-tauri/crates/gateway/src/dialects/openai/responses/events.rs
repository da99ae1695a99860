//! A response as events, in the order in which OpenAI's come.

use super::{
    item::{Item, Kind, Status, new_id},
    response::AnswerWriter,
};
use crate::{
    dialects::translate::Dialect,
    inference::wire::{Chunk, ChunkChoice, Completion, ToolCall},
};
use serde_json::{Map, Value, json};
use std::fmt::Write;
use tierbar_core::Error;

impl Dialect for AnswerWriter {
    const STREAM: &'static str = "text/event-stream";

    fn waiting(&mut self) -> String {
        ": loading\n\n".to_owned()
    }

    fn chunk(&mut self, chunk: Chunk) -> String {
        let mut out = String::new();
        self.take(chunk, &mut out);
        out
    }

    fn end(&mut self) -> String {
        let mut out = String::new();
        self.begin(&mut out);
        let status = self.finish(&mut out);
        let event = format!("response.{status}");
        let last = about("response", self.response(status, None));
        self.event(&event, last, &mut out);
        out
    }

    fn failed(&mut self, error: &Error) -> String {
        let mut out = String::new();
        self.begin(&mut out);
        for item in &mut self.output {
            if item.status == Status::InProgress {
                item.status = Status::Incomplete;
            }
        }
        let last = about("response", self.response("failed", Some(error)));
        self.event("response.failed", last, &mut out);
        out
    }

    fn whole(mut self, answer: Completion) -> Value {
        let choices = answer.choices.into_iter().map(|choice| {
            let mut delta = choice.message;
            // Only pieces of calls say which they belong to.
            for (index, call) in delta.tool_calls.iter_mut().flatten().enumerate() {
                call.index = index;
            }
            ChunkChoice {
                delta,
                finish_reason: choice.finish_reason,
                logprobs: choice.logprobs,
                ..ChunkChoice::default()
            }
        });
        let chunk = Chunk {
            model: answer.model,
            choices: choices.collect(),
            usage: answer.usage,
            tierbar: answer.tierbar,
            ..Chunk::default()
        };
        // What is told of it on the way has no reader.
        let mut events = String::new();
        self.take(chunk, &mut events);
        let status = self.finish(&mut events);
        self.response(status, None)
    }
}

impl AnswerWriter {
    fn take(&mut self, chunk: Chunk, out: &mut String) {
        if let Some(model) = chunk.model.filter(|model| !self.begun && !model.is_empty()) {
            self.model = model;
        }
        self.usage = chunk.usage.or(self.usage);
        self.chain = self.chain.take().or(chunk.tierbar);
        self.begin(out);
        let Some(choice) = chunk.choices.into_iter().next() else {
            return;
        };
        let rendered = choice
            .logprobs
            .and_then(|mut rendered| Some(rendered.get_mut("content")?.take()));
        if let Some(Value::Array(more)) = rendered {
            self.logprobs.extend(more);
        }
        let mut delta = choice.delta;
        let thought = delta.thoughts();
        let said = delta.content.filter(|text| !text.is_empty());
        let calls = delta.tool_calls.unwrap_or_default();
        let aside = said.is_none() && (thought.is_some() || !calls.is_empty());
        if let Some(text) = thought {
            self.think(&text, out);
        }
        if let Some(text) = said {
            self.text(&text, out);
        }
        for call in calls {
            self.call(call, out);
        }
        if aside {
            self.logprobs.clear();
        }
        self.finish = choice.finish_reason.or(self.finish.take());
    }

    fn begin(&mut self, out: &mut String) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        for event in ["response.created", "response.in_progress"] {
            let begun = about("response", self.response("in_progress", None));
            self.event(event, begun, out);
        }
    }

    /// Ends what is open. The response's status.
    fn finish(&mut self, out: &mut String) -> &'static str {
        let last = self.output.len().saturating_sub(1);
        for index in 0..self.output.len() {
            let cut = index == last && self.cut().is_some();
            let status = if cut {
                Status::Incomplete
            } else {
                Status::Completed
            };
            self.close(index, status, out);
        }
        if self.cut().is_some() {
            "incomplete"
        } else {
            "completed"
        }
    }

    fn think(&mut self, text: &str, out: &mut String) {
        let index = match self.writing() {
            Some((index, Kind::Reasoning)) => index,
            _ => self.open(Kind::Reasoning, out),
        };
        self.output[index].text.push_str(text);
        let mut event = self.output[index].place(index);
        event.insert("delta".to_owned(), json!(text));
        self.event("response.reasoning_text.delta", event, out);
    }

    fn text(&mut self, text: &str, out: &mut String) {
        let index = match self.writing() {
            Some((index, Kind::Message)) => index,
            _ => self.open(Kind::Message, out),
        };
        let logprobs = std::mem::take(&mut self.logprobs);
        let item = &mut self.output[index];
        item.text.push_str(text);
        let mut event = item.place(index);
        event.insert("delta".to_owned(), json!(text));
        event.insert("logprobs".to_owned(), json!(logprobs));
        item.logprobs.extend(logprobs);
        self.event("response.output_text.delta", event, out);
    }

    /// A call, or a piece of one. Servers may write several at a time, so none is closed before the end.
    fn call(&mut self, piece: ToolCall, out: &mut String) {
        let Some(number) = self.calls.number(&piece) else {
            return;
        };
        let belongs =
            |item: &Item| matches!(item.kind, Kind::Call { number: of, .. } if of == number);
        let found = self.output.iter().rposition(belongs);
        let index = found.unwrap_or_else(|| {
            let kind = Kind::Call {
                number,
                call_id: piece
                    .id
                    .filter(|id| !id.is_empty())
                    .unwrap_or_else(|| new_id("call")),
                name: piece.function.name.unwrap_or_default(),
            };
            self.open(kind, out)
        });
        if let Some(more) = piece.function.arguments.filter(|more| !more.is_empty()) {
            self.output[index].text.push_str(&more);
            let mut event = self.output[index].place(index);
            event.insert("delta".to_owned(), json!(more));
            self.event("response.function_call_arguments.delta", event, out);
        }
    }

    /// The item that is being written, if the last one is.
    fn writing(&self) -> Option<(usize, &Kind)> {
        let last = self.output.last();
        let last = last.filter(|item| item.status == Status::InProgress);
        last.map(|item| (self.output.len() - 1, &item.kind))
    }

    /// Begins an item behind those that there are. What was thought or said before it has come to its end.
    fn open(&mut self, kind: Kind, out: &mut String) -> usize {
        if let Some((last, Kind::Reasoning | Kind::Message)) = self.writing() {
            self.close(last, Status::Completed, out);
        }
        let (index, item) = (self.output.len(), Item::new(kind));
        let mut added = about("output_index", json!(index));
        added.insert("item".to_owned(), item.to_json());
        self.event("response.output_item.added", added, out);
        if !matches!(item.kind, Kind::Call { .. }) {
            let mut part = item.place(index);
            part.insert("part".to_owned(), item.part());
            self.event("response.content_part.added", part, out);
        }
        self.output.push(item);
        index
    }

    fn close(&mut self, index: usize, status: Status, out: &mut String) {
        let item = &mut self.output[index];
        if item.status != Status::InProgress {
            return;
        }
        item.status = status;
        let mut done = item.place(index);
        let event = match &item.kind {
            Kind::Reasoning => {
                done.insert("text".to_owned(), json!(item.text));
                "response.reasoning_text.done"
            }
            Kind::Message => {
                done.insert("text".to_owned(), json!(item.text));
                done.insert("logprobs".to_owned(), json!(item.logprobs));
                "response.output_text.done"
            }
            Kind::Call { name, .. } => {
                done.insert("name".to_owned(), json!(name));
                done.insert("arguments".to_owned(), json!(item.text));
                "response.function_call_arguments.done"
            }
        };
        let part = (!matches!(item.kind, Kind::Call { .. })).then(|| {
            let mut part = item.place(index);
            part.insert("part".to_owned(), item.part());
            part
        });
        let mut closed = about("output_index", json!(index));
        closed.insert("item".to_owned(), item.to_json());
        self.event(event, done, out);
        if let Some(part) = part {
            self.event("response.content_part.done", part, out);
        }
        self.event("response.output_item.done", closed, out);
    }

    fn event(&mut self, kind: &str, fields: Map<String, Value>, out: &mut String) {
        let mut event = about("type", json!(kind));
        event.insert("sequence_number".to_owned(), json!(self.sequence));
        event.extend(fields);
        self.sequence += 1;
        // A text takes whatever is written to it.
        let _ = write!(out, "event: {kind}\ndata: {}\n\n", Value::Object(event));
    }
}

fn about(key: &str, value: Value) -> Map<String, Value> {
    Map::from_iter([(key.to_owned(), value)])
}

#[cfg(test)]
mod tests;

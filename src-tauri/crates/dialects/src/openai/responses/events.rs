//! A response as events, in the order in which OpenAI's come.

use super::{
    item::{Item, Kind, Status, new_id},
    response::{AnswerWriter, error_json},
};
use crate::{
    openai::stores::{attributes, file_id, file_name},
    respond::Dialect,
};
use serde_json::{Value, json};
use std::fmt::Write;
use tierbar_core::{Error, documents::Passage};
use tierbar_inference::{
    ask::{CompleteAnswer, Event, ToolCallPart},
    pieces::Pieces,
};

impl Dialect for AnswerWriter {
    const STREAM: &'static str = "text/event-stream";
    type Rendered = Pieces;

    fn passes(&mut self) {
        self.passes = true;
    }

    fn event(&mut self, event: Event) -> Pieces {
        let mut out = Pieces::default();
        self.take(event, &mut out);
        out
    }

    fn whole(mut self, answer: CompleteAnswer) -> Pieces {
        self.chain = answer.chain;
        self.usage = answer.usage;
        self.model = answer.model.unwrap_or(self.model);
        self.sampling = answer.sampling.or(self.sampling);
        // The events have no reader.
        let mut events = Pieces::default();
        self.search(&mut events);
        if !answer.reasoning.is_empty() {
            self.think(answer.reasoning, &mut events);
        }
        if !answer.text.is_empty() {
            self.logprobs = answer.logprobs.into_iter().flat_map(tokens).collect();
            self.text(answer.text, &mut events);
        }
        for (index, call) in answer.calls.into_iter().enumerate() {
            let whole = ToolCallPart {
                index,
                id: call.id,
                name: Some(call.name),
                arguments: call.arguments,
            };
            self.call(whole, &mut events);
        }
        self.finish = Some(answer.reason);
        let status = self.finish(&mut events);
        self.response(status, None)
    }
}

/// The log probabilities of a piece, one for each token.
fn tokens(mut logprobs: Value) -> Vec<Value> {
    match logprobs.get_mut("content").map(Value::take) {
        Some(Value::Array(tokens)) => tokens,
        _ => Vec::new(),
    }
}

impl AnswerWriter {
    fn take(&mut self, event: Event, out: &mut Pieces) {
        match event {
            Event::Started(_) | Event::Passed(_) => {}
            Event::Progress(_) => out.append(": loading\n\n".to_owned().into()),
            Event::Chain(report) => {
                self.chain.get_or_insert(report);
            }
            Event::Usage(usage) => self.usage = usage,
            Event::Sampling(sampling) => self.sampling = Some(sampling),
            Event::Model(model) => {
                if !self.begun {
                    self.model = model;
                }
                self.begin(out);
            }
            Event::LogProbs(more) => self.logprobs.extend(tokens(more)),
            Event::Reasoning(text) => {
                self.begin(out);
                self.think(text, out);
                self.logprobs.clear();
            }
            Event::Text(text) => {
                self.begin(out);
                self.text(text, out);
            }
            Event::ToolCall(part) => {
                self.begin(out);
                self.call(part, out);
                self.logprobs.clear();
            }
            Event::Finished { reason, .. } => {
                self.finish = Some(reason);
                self.begin(out);
                let status = self.finish(out);
                let event = format!("response.{status}");
                let last = [("response", self.response(status, None))];
                self.write(&event, json!({}), &last, out);
            }
            Event::Failed(failed) => self.fail(&failed.error, out),
        }
    }

    fn fail(&mut self, error: &Error, out: &mut Pieces) {
        if self.passes {
            // The response is the server's, and this is not an event of it.
            let mut event = error_json(error);
            (event["type"], event["param"]) = (json!("error"), Value::Null);
            let _ = write!(out, "event: error\ndata: {event}\n\n");
            return;
        }
        self.begin(out);
        for item in &mut self.output {
            if item.status == Status::InProgress {
                item.end(Status::Incomplete, Vec::new());
            }
        }
        let last = [("response", self.response("failed", Some(error)))];
        self.write("response.failed", json!({}), &last, out);
    }

    fn begin(&mut self, out: &mut Pieces) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        for event in ["response.created", "response.in_progress"] {
            let begun = [("response", self.response("in_progress", None))];
            self.write(event, json!({}), &begun, out);
        }
        self.search(out);
    }

    /// The search that has run, as the first item.
    fn search(&mut self, out: &mut Pieces) {
        let Some(searched) = self.searched.take() else {
            return;
        };
        let results = searched.passages.iter().map(search_result);
        let results = match searched.shows_results {
            true => Value::Array(results.collect()),
            false => Value::Null,
        };
        let kind = Kind::Search {
            queries: searched.queries,
            results,
        };
        let index = self.open(kind, out);
        for step in ["in_progress", "searching", "completed"] {
            let place = self.output[index].place(index);
            self.write(
                &format!("response.file_search_call.{step}"),
                place,
                &[],
                out,
            );
        }
        self.close(index, Status::Completed, out);
    }

    /// Ends what is open, and returns the response's status.
    fn finish(&mut self, out: &mut Pieces) -> &'static str {
        let ending = match self.cut() {
            Some(_) => Status::Incomplete,
            None => Status::Completed,
        };
        for index in 0..self.output.len() {
            let is_last = index + 1 == self.output.len();
            let status = if is_last { ending } else { Status::Completed };
            self.close(index, status, out);
        }
        ending.as_str()
    }

    fn think(&mut self, text: String, out: &mut Pieces) {
        let index = match self.writing() {
            Some((index, Kind::Reasoning)) => index,
            _ => self.open(Kind::Reasoning, out),
        };
        let event = self.output[index].place(index);
        let delta = [("delta", Pieces::json(&text))];
        self.output[index].add(text);
        self.write("response.reasoning_text.delta", event, &delta, out);
    }

    fn text(&mut self, text: String, out: &mut Pieces) {
        let index = match self.writing() {
            Some((index, Kind::Message)) => index,
            _ => self.open(Kind::Message, out),
        };
        let logprobs = std::mem::take(&mut self.logprobs);
        let item = &mut self.output[index];
        let event = item.place(index);
        let delta = [
            ("delta", Pieces::json(&text)),
            ("logprobs", Pieces::json(&logprobs)),
        ];
        item.add(text);
        item.logprobs.extend(logprobs);
        self.write("response.output_text.delta", event, &delta, out);
    }

    /// Adds to a call. Servers may write several at a time, so none is closed before the end.
    fn call(&mut self, part: ToolCallPart, out: &mut Pieces) {
        let number = part.index;
        let belongs =
            |item: &Item| matches!(item.kind, Kind::Call { number: of, .. } if of == number);
        let found = self.output.iter().rposition(belongs);
        let index = found.unwrap_or_else(|| {
            let kind = Kind::Call {
                number,
                call_id: part
                    .id
                    .filter(|id| !id.is_empty())
                    .unwrap_or_else(|| new_id("call")),
                name: part.name.unwrap_or_default(),
            };
            self.open(kind, out)
        });
        if !part.arguments.is_empty() {
            let event = self.output[index].place(index);
            let delta = [("delta", Pieces::json(&part.arguments))];
            self.output[index].add(part.arguments);
            self.write("response.function_call_arguments.delta", event, &delta, out);
        }
    }

    /// The item that is being written, if the last one is.
    fn writing(&self) -> Option<(usize, &Kind)> {
        let last = self.output.last();
        let last = last.filter(|item| item.status == Status::InProgress);
        last.map(|item| (self.output.len() - 1, &item.kind))
    }

    /// Begins an item after those that there are. Reasoning or text before it is complete.
    fn open(&mut self, kind: Kind, out: &mut Pieces) -> usize {
        if let Some((last, Kind::Reasoning | Kind::Message)) = self.writing() {
            self.close(last, Status::Completed, out);
        }
        let (index, item) = (self.output.len(), Item::new(kind));
        let (place, added) = (json!({"output_index": index}), [("item", item.to_json())]);
        self.write("response.output_item.added", place, &added, out);
        if item.has_part() {
            let (place, part) = (item.place(index), [("part", item.part())]);
            self.write("response.content_part.added", place, &part, out);
        }
        self.output.push(item);
        index
    }

    fn close(&mut self, index: usize, status: Status, out: &mut Pieces) {
        if self.output[index].status != Status::InProgress {
            return;
        }
        let annotations = match self.output[index].kind {
            Kind::Message => self.annotate(index, out),
            _ => Vec::new(),
        };
        let item = &mut self.output[index];
        item.end(status, annotations);
        let (place, text) = (item.place(index), item.complete.text.clone());
        let mut done = place.clone();
        let event = match &item.kind {
            Kind::Reasoning => Some(("response.reasoning_text.done", vec![("text", text)])),
            Kind::Message => {
                let logprobs = ("logprobs", item.complete.logprobs.clone());
                Some(("response.output_text.done", vec![("text", text), logprobs]))
            }
            Kind::Call { name, .. } => {
                done["name"] = json!(name);
                let arguments = vec![("arguments", text)];
                Some(("response.function_call_arguments.done", arguments))
            }
            Kind::Search { .. } => None,
        };
        let part = item.has_part().then(|| [("part", item.part())]);
        let closed = [("item", item.to_json())];
        if let Some((event, members)) = event {
            self.write(event, done, &members, out);
        }
        if let Some(part) = part {
            self.write("response.content_part.done", place, &part, out);
        }
        let place = json!({"output_index": index});
        self.write("response.output_item.done", place, &closed, out);
    }

    /// Notes what a message cites.
    fn annotate(&mut self, index: usize, out: &mut Pieces) -> Vec<Value> {
        let annotations = self.annotations(&self.output[index].text);
        for (number, annotation) in annotations.iter().enumerate() {
            let mut added = self.output[index].place(index);
            added["annotation_index"] = json!(number);
            added["annotation"] = annotation.clone();
            self.write("response.output_text.annotation.added", added, &[], out);
        }
        annotations
    }

    /// Writes an event with these fields, and members after them.
    fn write(&mut self, kind: &str, fields: Value, members: &[(&str, Pieces)], out: &mut Pieces) {
        let mut event = json!({"type": kind, "sequence_number": self.sequence});
        if let (Value::Object(event), Value::Object(mut fields)) = (&mut event, fields) {
            event.append(&mut fields);
        }
        self.sequence += 1;
        // A text takes whatever is written to it.
        let _ = write!(out, "event: {kind}\ndata: ");
        out.append(Pieces::object(&event, members));
        let _ = out.write_str("\n\n");
    }
}

/// A passage as a search returns it.
fn search_result(passage: &Passage) -> Value {
    json!({
        "file_id": file_id(passage.file),
        "filename": file_name(&passage.path),
        "score": passage.score,
        "text": passage.text,
        "attributes": attributes(passage),
    })
}

#[cfg(test)]
mod tests;

//! What a response holds: reasoning, a message, calls.

use serde_json::{Value, json};
use std::mem::take;
use tierbar_inference::pieces::Pieces;
use uuid::Uuid;

#[derive(Debug)]
pub(super) struct Item {
    pub(super) kind: Kind,
    pub(super) id: String,
    /// Reasoning, a message's text, or a call's arguments, until it is complete.
    pub(super) text: String,
    /// A message's, in the form of a chat's, until it is complete.
    pub(super) logprobs: Vec<Value>,
    pub(super) status: Status,
    /// What it holds once it is complete.
    pub(super) complete: Complete,
}

/// What an item holds, as JSON: each is in several events.
#[derive(Debug)]
pub(super) struct Complete {
    pub(super) text: Pieces,
    pub(super) logprobs: Pieces,
    annotations: Vec<Value>,
}

#[derive(Debug)]
pub(super) enum Kind {
    Reasoning,
    Message,
    Call {
        /// Among the answer's calls.
        number: usize,
        call_id: String,
        name: String,
    },
    /// A search of documents, which has run before the model was asked.
    Search {
        queries: Vec<String>,
        /// A list, or `null` for a request that does not ask for them.
        results: Value,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    InProgress,
    Completed,
    Incomplete,
}

impl Status {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Incomplete => "incomplete",
        }
    }
}

impl Item {
    pub(super) fn new(kind: Kind) -> Self {
        let prefix = match &kind {
            Kind::Reasoning => "rs",
            Kind::Message => "msg",
            Kind::Call { .. } => "fc",
            Kind::Search { .. } => "fs",
        };
        Self {
            kind,
            id: new_id(prefix),
            text: String::new(),
            logprobs: Vec::new(),
            status: Status::InProgress,
            complete: Complete {
                text: Pieces::json(&""),
                logprobs: Pieces::json(&json!([])),
                annotations: Vec::new(),
            },
        }
    }

    /// Adds to its text.
    pub(super) fn add(&mut self, text: String) {
        match self.text.is_empty() {
            true => self.text = text,
            false => self.text.push_str(&text),
        }
    }

    /// Ends the item, which holds what was added.
    pub(super) fn end(&mut self, status: Status, annotations: Vec<Value>) {
        self.status = status;
        self.complete = Complete {
            text: Pieces::json(&take(&mut self.text)),
            logprobs: Pieces::json(&take(&mut self.logprobs)),
            annotations,
        };
    }

    /// The whole item; while it is written, without what it holds.
    pub(super) fn to_json(&self) -> Pieces {
        let status = self.status.as_str();
        let begun = self.status != Status::InProgress;
        let content = || ("content", Pieces::list(begun.then(|| self.part())));
        match &self.kind {
            Kind::Reasoning => {
                let item =
                    json!({"id": self.id, "type": "reasoning", "summary": [], "status": status});
                Pieces::object(&item, &[content()])
            }
            Kind::Message => {
                let item = json!({"id": self.id, "type": "message", "status": status, "role": "assistant"});
                Pieces::object(&item, &[content()])
            }
            Kind::Call { call_id, name, .. } => {
                let item = json!({"id": self.id, "type": "function_call", "status": status, "call_id": call_id, "name": name});
                Pieces::object(&item, &[("arguments", self.complete.text.clone())])
            }
            Kind::Search { queries, results } => {
                let results = if begun { results } else { &Value::Null };
                Pieces::json(
                    &json!({"id": self.id, "type": "file_search_call", "status": status, "queries": queries, "results": results}),
                )
            }
        }
    }

    /// Whether what it holds is a part of content.
    pub(super) fn has_part(&self) -> bool {
        matches!(self.kind, Kind::Reasoning | Kind::Message)
    }

    /// The one part of reasoning or a message.
    pub(super) fn part(&self) -> Pieces {
        let complete = &self.complete;
        let text = ("text", complete.text.clone());
        match self.kind {
            Kind::Reasoning => Pieces::object(&json!({"type": "reasoning_text"}), &[text]),
            _ => Pieces::object(
                &json!({"type": "output_text", "annotations": complete.annotations}),
                &[text, ("logprobs", complete.logprobs.clone())],
            ),
        }
    }

    /// What an event about it says of where it is.
    pub(super) fn place(&self, output_index: usize) -> Value {
        let mut place = json!({"item_id": self.id, "output_index": output_index});
        if self.has_part() {
            place["content_index"] = json!(0);
        }
        place
    }
}

pub(super) fn new_id(prefix: &str) -> String {
    format!("{prefix}_{}", Uuid::new_v4().simple())
}

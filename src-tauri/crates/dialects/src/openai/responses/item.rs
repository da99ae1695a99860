//! What a response holds: reasoning, a message, calls.

use serde_json::{Value, json};
use uuid::Uuid;

#[derive(Debug)]
pub(super) struct Item {
    pub(super) kind: Kind,
    pub(super) id: String,
    /// Reasoning, a message's text, or a call's arguments.
    pub(super) text: String,
    /// A message's, in the form of a chat's.
    pub(super) logprobs: Vec<Value>,
    /// A message's, once it is complete.
    pub(super) annotations: Vec<Value>,
    pub(super) status: Status,
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
            annotations: Vec::new(),
            status: Status::InProgress,
        }
    }

    /// The whole item; while it is written, without what it holds.
    pub(super) fn to_json(&self) -> Value {
        let status = self.status.as_str();
        let begun = self.status != Status::InProgress;
        let content = || if begun { vec![self.part()] } else { Vec::new() };
        match &self.kind {
            Kind::Reasoning => {
                json!({"id": self.id, "type": "reasoning", "summary": [], "content": content(), "status": status})
            }
            Kind::Message => {
                json!({"id": self.id, "type": "message", "status": status, "role": "assistant", "content": content()})
            }
            Kind::Call { call_id, name, .. } => {
                let arguments = if begun { self.text.as_str() } else { "" };
                json!({"id": self.id, "type": "function_call", "status": status, "call_id": call_id, "name": name, "arguments": arguments})
            }
            Kind::Search { queries, results } => {
                let results = if begun { results } else { &Value::Null };
                json!({"id": self.id, "type": "file_search_call", "status": status, "queries": queries, "results": results})
            }
        }
    }

    /// Whether what it holds is a part of content.
    pub(super) fn has_part(&self) -> bool {
        matches!(self.kind, Kind::Reasoning | Kind::Message)
    }

    /// The one part of reasoning or a message.
    pub(super) fn part(&self) -> Value {
        match self.kind {
            Kind::Reasoning => json!({"type": "reasoning_text", "text": self.text}),
            _ => {
                json!({"type": "output_text", "text": self.text, "annotations": self.annotations, "logprobs": self.logprobs})
            }
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

//! A conversation's items as a chat's messages.

use super::{
    compaction,
    content::{arguments, joined, parts, plain, text, text_part},
    tools::{kind, left_out},
};
use serde_json::{Map, Value, json};
use std::{borrow::Cow, collections::HashSet};
use tierbar_chats::context::summary_note;
use tierbar_core::{Error, bad_request, documents::Passage};
use tierbar_documents::answer::{self, QuotedPassage};

/// The messages of a chat as they come together: neighbours of one role are one message, since what the model did in a turn is
/// several items here, and many templates know no two messages of one role in a row.
#[derive(Debug, Default)]
pub(super) struct Messages {
    pub(super) list: Vec<Map<String, Value>>,
    /// What is left out of the chat.
    pub(super) left_out: Vec<String>,
    /// Images, sounds and files among the results of tools, where a chat has text alone. They follow as the user's.
    seen: Vec<Value>,
    /// The ids of the calls so far.
    called: HashSet<String>,
}

impl Messages {
    /// Puts them first.
    pub(super) fn instruct(&mut self, instructions: &Value) -> Result<(), Error> {
        match instructions {
            Value::Null => {}
            Value::String(text) => self.add("system", json!(text)),
            Value::Array(items) => self.items("instructions", items)?,
            _ => {
                return Err(bad_request(
                    "`instructions` must be a string or a list of items",
                ));
            }
        }
        Ok(())
    }

    /// Reads what is said. Items that are stored elsewhere are refused.
    pub(super) fn read(&mut self, input: Option<Value>) -> Result<(), Error> {
        match input {
            Some(Value::String(text)) => self.add("user", json!(text)),
            Some(Value::Array(items)) => self.items("input", &items)?,
            None | Some(Value::Null) => {}
            Some(_) => return Err(bad_request("`input` must be a string or a list of items")),
        }
        self.complete()
    }

    pub(super) fn read_items(&mut self, items: &[Value]) -> Result<(), Error> {
        self.items("input", items)?;
        self.complete()
    }

    /// Puts the passages of a search into the user's last message, as quotations.
    pub(super) fn quote(&mut self, passages: &[Passage]) {
        let passages: Vec<_> = passages.iter().map(QuotedPassage::from).collect();
        let last = self
            .list
            .iter_mut()
            .rfind(|message| message["role"] == "user");
        let Some(content) = last.and_then(|message| message.get_mut("content")) else {
            return;
        };
        match content {
            Value::String(text) => *text = answer::question(text, 1, &passages),
            Value::Array(parts) => {
                parts.insert(0, text_part(&answer::quotations(1, &passages)));
            }
            _ => {}
        }
    }

    fn complete(&mut self) -> Result<(), Error> {
        // Of some turns nothing but thoughts is left, and each message has a content.
        for message in &mut self.list {
            message.entry("content").or_insert_with(|| json!(""));
        }
        if !self.list.is_empty() {
            return Ok(());
        }
        if self.left_out.is_empty() {
            return Err(bad_request(
                "`input` is empty: send a string or at least one message",
            ));
        }
        let message = format!(
            "`input` has nothing that a model can read here: {}",
            self.left_out.join(", ")
        );
        Err(bad_request(message).hint("send a string or at least one message"))
    }

    fn items(&mut self, list: &str, items: &[Value]) -> Result<(), Error> {
        for (index, item) in items.iter().enumerate() {
            let place = format!("{list}[{index}]");
            let item = &*as_function(item);
            if kind(item) != "function_call_output" {
                self.show();
            }
            match kind(item) {
                "" if item.get("role").is_some() => self.message(&place, item)?,
                "message" => self.message(&place, item)?,
                "reasoning" => self.reasoning(item),
                "function_call" => self.call(&place, item)?,
                "function_call_output" => self.output(&place, item)?,
                compaction::KIND => {
                    let summary = compaction::summary(&place, item)?;
                    self.add("user", json!(summary_note(&summary)));
                }
                "item_reference" => {
                    return Err(bad_request(format!(
                        "`{place}` refers to a stored item, and items are not stored here"
                    ))
                    .hint("send the item itself"));
                }
                "" => {
                    return Err(bad_request(format!(
                        "`{place}` is not an item: it has neither `type` nor `role`"
                    )));
                }
                other => self.left_out.push(left_out(list, index, other)),
            }
        }
        self.show();
        Ok(())
    }

    fn message(&mut self, place: &str, item: &Value) -> Result<(), Error> {
        let role = match item["role"].as_str() {
            // Few templates know `developer`.
            Some("system" | "developer") => "system",
            Some(role @ ("user" | "assistant")) => role,
            _ => {
                return Err(bad_request(format!(
                    "`{place}.role` must be user, assistant, system or developer"
                )));
            }
        };
        let content = plain(parts(place, "content", &item["content"])?);
        let has_begun = self.list.iter().any(|message| message["role"] != "system");
        match content.as_str().filter(|_| role == "system" && has_begun) {
            Some(text) => self.add("user", json!(crate::reminder(text))),
            None => self.add(role, content),
        }
        Ok(())
    }

    /// The model's reasoning, or its summaries where the reasoning itself was not sent.
    fn reasoning(&mut self, item: &Value) {
        let texts = |list: &str| {
            let parts = item[list].as_array().map_or(&[][..], Vec::as_slice);
            let texts = parts.iter().filter_map(|part| part["text"].as_str());
            texts.collect::<Vec<_>>().join("\n\n")
        };
        let text = Some(texts("content")).filter(|text| !text.is_empty());
        let text = text.unwrap_or_else(|| texts("summary"));
        if !text.is_empty() {
            let message = self.of("assistant");
            let before = message.get("reasoning_content").cloned();
            message.insert("reasoning_content".to_owned(), joined(before, json!(text)));
        }
    }

    fn call(&mut self, place: &str, item: &Value) -> Result<(), Error> {
        let function = json!({"name": text(place, item, "name")?, "arguments": arguments(item)});
        let id = text(place, item, "call_id")?;
        self.called.insert(id.to_owned());
        let call = json!({"id": id, "type": "function", "function": function});
        let message = self.of("assistant");
        message.entry("content").or_insert(Value::Null);
        let calls = message.entry("tool_calls").or_insert_with(|| json!([]));
        if let Some(calls) = calls.as_array_mut() {
            calls.push(call);
        }
        Ok(())
    }

    fn output(&mut self, place: &str, item: &Value) -> Result<(), Error> {
        let id = text(place, item, "call_id")?;
        if !self.called.contains(id) {
            return Err(bad_request(format!(
                "`{place}` is the result of the call \"{id}\", and no call before it has that `call_id`"
            ))
            .hint("send the model's `function_call` item before its result"));
        }
        let (texts, seen) = parts(place, "output", &item["output"])?
            .into_iter()
            .partition(|part| kind(part) == "text");
        self.seen.extend::<Vec<_>>(seen);
        let content = match plain(texts) {
            Value::Array(_) => json!(""),
            text => text,
        };
        self.begin("tool").extend([
            ("tool_call_id".to_owned(), json!(id)),
            ("content".to_owned(), content),
        ]);
        Ok(())
    }

    fn show(&mut self) {
        if !self.seen.is_empty() {
            let seen = std::mem::take(&mut self.seen);
            self.add("user", seen.into());
        }
    }

    pub(super) fn add(&mut self, role: &str, content: Value) {
        let message = self.of(role);
        let before = message.get("content").cloned();
        message.insert("content".to_owned(), joined(before, content));
    }

    /// The last message if it is of this role, else a new one.
    fn of(&mut self, role: &str) -> &mut Map<String, Value> {
        let last = self.list.len().checked_sub(1);
        match last.filter(|&last| self.list[last]["role"] == role) {
            Some(last) => &mut self.list[last],
            None => self.begin(role),
        }
    }

    fn begin(&mut self, role: &str) -> &mut Map<String, Value> {
        let at = self.list.len();
        self.list
            .push(Map::from_iter([("role".to_owned(), json!(role))]));
        &mut self.list[at]
    }
}

/// A call of the shell, and its result, as those of a function, which models here know.
fn as_function(item: &Value) -> Cow<'_, Value> {
    let id = [&item["call_id"], &item["id"]];
    let id = id.into_iter().find(|id| id.is_string());
    Cow::Owned(match kind(item) {
        "local_shell_call" => {
            json!({"type": "function_call", "call_id": id, "name": "local_shell", "arguments": item["action"]})
        }
        "local_shell_call_output" => {
            json!({"type": "function_call_output", "call_id": id, "output": item["output"]})
        }
        _ => return Cow::Borrowed(item),
    })
}

#[cfg(test)]
mod tests;

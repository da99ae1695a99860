//! A conversation's items with a summary in the place of most of them, and the summary as a message of a later conversation.
//!
//! Shapes: Open Responses, version 2026-04-24, "Compaction item" and "The compacted response object".

use super::{
    content::{arguments, parts, plain, text},
    item::new_id,
    messages::Messages,
    tools::{kind, left_out},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use std::collections::HashSet;
use tierbar_chats::context::{add_entry, earlier_summary};
use tierbar_core::{Error, bad_request};

/// Tells our summaries from those of other servers, which only they can read. What follows is the text in base64: the client has it
/// anyway, and a key would only make it worthless to the next host.
pub(super) const PREFIX: &str = "tierbar-summary:";

/// A conversation as it is compacted.
#[derive(Debug, Default)]
pub struct Window {
    /// What no summary can replace, and stays before it: instructions, images and sound.
    before: Vec<Value>,
    /// What the summary replaces.
    pub text: String,
    /// What the model has yet to answer, and stays behind it: the last questions, and calls without a result.
    after: Vec<Value>,
    /// What is in none of them.
    pub left_out: Vec<String>,
}

impl Window {
    /// # Errors
    /// `BadRequest` for what is no conversation, has nothing to summarize, or has a summary of another server.
    pub fn read(input: Option<Value>) -> Result<Self, Error> {
        let items = match input {
            Some(Value::Array(items)) => items,
            Some(Value::String(text)) => vec![json!({"role": "user", "content": text})],
            None | Some(Value::Null) => Vec::new(),
            Some(_) => return Err(bad_request("`input` must be a string or a list of items")),
        };
        // Refuses what a response would refuse too.
        Messages::default().read_items(&items)?;
        let is_question = |item: &&Value| item["role"] == "user";
        let last = items.len() - items.iter().rev().take_while(is_question).count();
        let window = Self::split(&items, last)?;
        if !window.text.is_empty() {
            return Ok(window);
        }
        // Both at once would be a copy too many.
        drop(window);
        let window = Self::split(&items, items.len())?;
        if window.text.is_empty() {
            return Err(bad_request("`input` has no text to compact"));
        }
        Ok(window)
    }

    /// `last`: where the questions begin that are kept.
    fn split(items: &[Value], last: usize) -> Result<Self, Error> {
        let mut window = Self::default();
        let results = items.iter().filter(|item| kind(item) == RESULT);
        let results: HashSet<_> = results
            .filter_map(|item| item["call_id"].as_str())
            .collect();
        for (index, item) in items.iter().enumerate() {
            let place = format!("input[{index}]");
            let is_call = kind(item) == "function_call";
            let id = item["call_id"].as_str();
            let waits = is_call && id.is_none_or(|id| !results.contains(id));
            if index >= last || waits {
                window.after.push(returned_item(item)?);
            } else {
                window.take(&place, index, item)?;
            }
        }
        Ok(window)
    }

    fn take(&mut self, place: &str, index: usize, item: &Value) -> Result<(), Error> {
        match kind(item) {
            "" | "message" => self.message(place, item)?,
            "function_call" => {
                let call = format!("{}({})", text(place, item, "name")?, arguments(item));
                add_entry(&mut self.text, "Assistant calls", &call);
            }
            RESULT => {
                let (texts, media) = split_text(parts(place, "output", &item["output"])?);
                add_entry(&mut self.text, "Result", &texts);
                if !media.is_empty() {
                    let output = item["output"].as_array().map_or(&[][..], Vec::as_slice);
                    let shown = output.iter().filter(|part| kind(part) != "input_text");
                    let shown: Vec<_> = shown.cloned().collect();
                    self.before
                        .push(returned_item(&json!({"role": "user", "content": shown}))?);
                }
            }
            KIND => self.text += &earlier_summary(&summary(place, item)?),
            other => self.left_out.push(left_out("input", index, other)),
        }
        Ok(())
    }

    fn message(&mut self, place: &str, item: &Value) -> Result<(), Error> {
        let (texts, media) = split_text(parts(place, "content", &item["content"])?);
        let who = match item["role"].as_str() {
            Some("user") if media.is_empty() => "User",
            Some("assistant") if media.is_empty() => "Assistant",
            _ => {
                self.before.push(returned_item(item)?);
                return Ok(());
            }
        };
        if !texts.is_empty() {
            add_entry(&mut self.text, who, &texts);
        }
        Ok(())
    }

    /// Returns the items of the compacted conversation, to be sent back as they are.
    pub fn output(self, summary: &str) -> Vec<Value> {
        let sealed = format!("{PREFIX}{}", STANDARD.encode(summary));
        let item = json!({"id": new_id("cmp"), "type": KIND, "encrypted_content": sealed});
        [self.before, vec![item], self.after].concat()
    }
}

pub(super) const KIND: &str = "compaction";
const RESULT: &str = "function_call_output";

/// Returns the summary of an item that [`Window::output`] has made.
pub(super) fn summary(place: &str, item: &Value) -> Result<String, Error> {
    let sealed = text(place, item, "encrypted_content")?;
    let bytes = sealed
        .strip_prefix(PREFIX)
        .map(|text| STANDARD.decode(text));
    let summary = bytes.and_then(|bytes| String::from_utf8(bytes.ok()?).ok());
    summary.ok_or_else(|| {
        bad_request(format!(
            "`{place}` is a conversation that another server has compacted, which only that server can read"
        ))
        .hint("send the conversation itself, or compact it here with POST /v1/responses/compact")
    })
}

/// The texts, and the other parts.
fn split_text(parts: Vec<Value>) -> (String, Vec<Value>) {
    let (texts, media): (Vec<_>, Vec<_>) = parts.into_iter().partition(|part| kind(part) == "text");
    let texts = plain(texts).as_str().unwrap_or_default().to_owned();
    (texts, media)
}

/// An item as a response has it: with an id, a status and parts.
fn returned_item(item: &Value) -> Result<Value, Error> {
    let mut item = item.clone();
    let is_call = kind(&item) == "function_call";
    let fields = item
        .as_object_mut()
        .ok_or_else(|| bad_request("an item is not an object"))?;
    let missing = |value: Option<&Value>| value.is_none_or(Value::is_null);
    let (kind, prefix) = match is_call {
        true => ("function_call", "fc"),
        false => ("message", "msg"),
    };
    fields.insert("type".to_owned(), json!(kind));
    if missing(fields.get("id")) {
        fields.insert("id".to_owned(), json!(new_id(prefix)));
    }
    if missing(fields.get("status")) {
        fields.insert("status".to_owned(), json!("completed"));
    }
    if is_call {
        let arguments = arguments(&Value::Object(fields.clone()));
        fields.insert("arguments".to_owned(), json!(arguments));
        return Ok(item);
    }
    let content = match fields.get("content") {
        Some(Value::Array(parts)) => parts.iter().cloned().map(with_detail).collect(),
        Some(Value::String(text)) => vec![json!({"type": "input_text", "text": text})],
        _ => Vec::new(),
    };
    fields.insert("content".to_owned(), content.into());
    Ok(item)
}

/// A response names the detail of each image.
fn with_detail(mut part: Value) -> Value {
    if kind(&part) == "input_image" && part["detail"].is_null() {
        part["detail"] = json!("auto");
    }
    part
}

#[cfg(test)]
mod tests;

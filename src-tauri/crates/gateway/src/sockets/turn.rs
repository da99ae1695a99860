//! A client's message as the body of a request, with the conversation that it continues.

use serde_json::{Map, Value};
use std::fmt::Write as _;
use tierbar_core::{Error, bad_request};
use tierbar_dialects::openai::responses::no_previous_response;
use tierbar_edge::keys::Weight;
use tierbar_inference::body;

const CREATE: &str = "response.create";

/// The conversation up to the last response. It is kept for as long as the connection lasts.
#[derive(Debug)]
pub(super) struct Conversation {
    pub(super) id: String,
    /// Its items as JSON, with commas between them.
    pub(super) items: String,
    pub(super) _weight: Weight,
}

/// A message that has been read.
#[derive(Debug)]
pub(super) struct TurnMessage {
    pub(super) body: String,
    /// The response that it continues.
    pub(super) continues: Option<String>,
    /// The items of its whole input, as [`Conversation`] has them.
    pub(super) items: String,
    pub(super) weight: Weight,
}

impl TurnMessage {
    /// Reads a message. The response that it continues is forgotten: if the turn succeeds, the turn's own takes its place, and if it
    /// fails, there is nothing to continue from, as the specification has it.
    ///
    /// # Errors
    /// `BadRequest` for what is no `response.create`, `PreviousResponseNotFound` for a response that is not in memory,
    /// `Overloaded` while there is no room for it.
    pub(super) fn parse(
        text: &str,
        kept: &mut Option<Conversation>,
        mut weight: Weight,
    ) -> Result<Self, Error> {
        weight.grow_by_values(text.as_bytes(), false)?;
        let mut fields: Map<String, Value> =
            body::parse(text.as_bytes()).map_err(|error| Error {
                message: error.message.replace("the body", "the message"),
                ..error
            })?;
        check(&mut fields)?;
        let previous = match fields.shift_remove("previous_response_id") {
            None | Some(Value::Null) => None,
            Some(id) => {
                let named = kept.take_if(|kept| id == kept.id.as_str());
                Some(named.ok_or_else(|| no_previous_response(&id))?)
            }
        };
        fields.insert("stream".to_owned(), true.into());
        let (continues, mut items) = match previous {
            Some(Conversation { id, items, .. }) => (Some(id), items),
            None => (None, String::new()),
        };
        match fields.shift_remove("input") {
            None | Some(Value::Null) => {}
            Some(Value::String(text)) => {
                let mut item = Map::new();
                item.insert("type".to_owned(), "message".into());
                item.insert("role".to_owned(), "user".into());
                item.insert("content".to_owned(), text.into());
                add(&mut items, &Value::Object(item));
            }
            Some(Value::Array(more)) => more.iter().for_each(|item| add(&mut items, item)),
            Some(_) => {
                return Err(bad_request("`input` must be a string or a list of items"));
            }
        }
        let mut body = Value::Object(fields).to_string();
        // The fields are an object with at least one of them.
        body.pop();
        body.push_str(",\"input\":[");
        body.push_str(&items);
        body.push_str("]}");
        weight.shrink_to(0);
        weight.grow(items.len())?;
        Ok(Self {
            body,
            continues,
            items,
            weight,
        })
    }
}

/// Adds an item, of which there is no copy besides.
fn add(items: &mut String, item: &Value) {
    let comma = if items.is_empty() { "" } else { "," };
    // A text takes whatever is written to it.
    let _ = write!(items, "{comma}{item}");
}

pub(super) fn add_items(items: &mut String, more: &str) {
    if !items.is_empty() && !more.is_empty() {
        items.push(',');
    }
    items.push_str(more);
}

/// Takes out the fields that a request over HTTP does not have, and those about a stream, which a WebSocket always is.
fn check(fields: &mut Map<String, Value>) -> Result<(), Error> {
    let kind = fields.shift_remove("type").unwrap_or_default();
    if kind != CREATE {
        let what = match kind.as_str() {
            Some(kind) => format!("the type \"{kind:.100}\""),
            None => "no `type`".to_owned(),
        };
        return Err(bad_request(format!(
            "the message has {what}, and this WebSocket takes \"{CREATE}\" alone"
        ))
        .hint("send {\"type\": \"response.create\"} with the fields of POST /v1/responses; other APIs have paths of their own"));
    }
    fields.shift_remove("stream_options");
    if fields
        .shift_remove("stream_id")
        .is_some_and(|id| !id.is_null())
    {
        return Err(bad_request(
            "`stream_id` is not supported: a connection answers one message at a time",
        )
        .hint("open a connection for each"));
    }
    for (field, allowed) in [("stream", true), ("background", false), ("generate", true)] {
        match fields.shift_remove(field) {
            None | Some(Value::Null) => {}
            Some(value) if value == allowed => {}
            Some(value) => {
                return Err(bad_request(format!(
                    "`{field}` is {value}, and over a WebSocket it can only be {allowed}"
                ))
                .hint("leave it out"));
            }
        }
    }
    Ok(())
}

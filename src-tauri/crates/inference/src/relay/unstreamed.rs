//! A whole answer as the events of a stream, for servers that do not stream.

use crate::{
    error,
    held::{Share, leaving},
    pieces::{self, Pieces},
    wire,
};
use bytes::Bytes;
use serde_json::{Map, Value, json};
use std::fmt::Write as _;
use tierbar_core::{
    json::repair,
    json_edit::{self, Change},
};

/// Parses an answer and changes it. Its bytes are dropped, before more is made of it.
fn parse_changed(answer: Bytes, changes: Vec<Change>) -> Result<Value, serde_json::Error> {
    let mut fields: Map<String, Value> = repair::parse(&answer)?;
    json_edit::apply(&mut fields, changes);
    Ok(Value::Object(fields))
}

/// One event with all of it, and the last one.
pub(crate) fn as_events(answer: Bytes, changes: Vec<Change>) -> Bytes {
    let events = match as_chunk(answer, changes) {
        Ok(event) => format!("data: {event}\n\ndata: [DONE]\n\n"),
        Err(error) => error::last_event(&wire::unreadable(&error)),
    };
    Share::moved(events.len()).hold(events.into())
}

/// A whole answer as one chunk.
pub(crate) fn as_chunk(answer: Bytes, changes: Vec<Change>) -> Result<Value, serde_json::Error> {
    let mut answer = parse_changed(answer, changes)?;
    let choices = answer.get_mut("choices").and_then(Value::as_array_mut);
    let mut is_chat = false;
    for (index, choice) in choices.into_iter().flatten().enumerate() {
        let Some(choice) = choice.as_object_mut() else {
            continue;
        };
        choice.entry("index").or_insert(index.into());
        if let Some(mut message) = choice.remove("message") {
            is_chat = true;
            number(&mut message);
            choice.insert("delta".to_owned(), message);
        }
    }
    if is_chat {
        answer["object"] = "chat.completion.chunk".into();
    }
    Ok(answer)
}

/// A whole message of Anthropic's as its events; `None` for what is none, or takes too much memory.
pub(crate) fn as_message_events(message: Bytes, changes: Vec<Change>) -> Option<Vec<Bytes>> {
    let mut message = parse_changed(message, changes).ok()?;
    let Value::Array(content) = message.get_mut("content")?.take() else {
        return None;
    };
    message["content"] = json!([]);
    let usage = Pieces::json(&message["usage"]);
    let [reason, stop] = ["stop_reason", "stop_sequence"].map(|name| message[name].take());
    let mut events = Events::default();
    let begun = Value::from_iter([("message", message)]);
    events.write("message_start", begun, &[]);
    for (index, mut block) in content.into_iter().enumerate() {
        let deltas = block_pieces(&mut block);
        let place = |name: &str, what: Value| {
            Value::from_iter([("index", Value::from(index)), (name, what)])
        };
        events.write("content_block_start", place("content_block", block), &[]);
        for delta in deltas {
            events.write("content_block_delta", place("delta", delta), &[]);
        }
        events.write("content_block_stop", json!({"index": index}), &[]);
    }
    let delta = json!({"delta": {"stop_reason": reason, "stop_sequence": stop}});
    events.write("message_delta", delta, &[("usage", usage)]);
    events.write("message_stop", json!({}), &[]);
    Some(leaving(events.out.into_bytes()))
}

/// Takes what streams in pieces out of a block. Others are whole from their beginning, such as redacted thoughts and results.
fn block_pieces(block: &mut Value) -> Vec<Value> {
    let kind = block["type"].as_str().map(str::to_owned);
    let mut take = |field: &str, empty: Value| {
        let value = block.get_mut(field).filter(|value| !value.is_null());
        value.map(|value| std::mem::replace(value, empty))
    };
    let text = |name: &str, field: &str, text: Value| {
        Value::from_iter([("type", Value::from(name)), (field, text)])
    };
    let mut pieces = Vec::new();
    match kind.as_deref() {
        Some("text") => {
            let whole = take("text", "".into());
            pieces.extend(whole.map(|whole| text("text_delta", "text", whole)));
            if let Some(Value::Array(citations)) = take("citations", json!([])) {
                let citations = citations.into_iter();
                pieces.extend(citations.map(|one| text("citations_delta", "citation", one)));
            }
        }
        Some("thinking") => {
            let whole = take("thinking", "".into());
            pieces.extend(whole.map(|whole| text("thinking_delta", "thinking", whole)));
            let signature = take("signature", "".into());
            pieces.extend(signature.map(|all| text("signature_delta", "signature", all)));
        }
        Some("tool_use" | "server_tool_use" | "mcp_tool_use") => {
            let input = take("input", json!({})).map(|input| input.to_string());
            pieces
                .extend(input.map(|input| text("input_json_delta", "partial_json", input.into())));
        }
        _ => {}
    }
    pieces
}

/// A whole response of OpenAI's as its events, which share its long fields.
///
/// `None` for what is no object, or takes too much memory.
pub(crate) fn as_response_events(response: Bytes, changes: Vec<Change>) -> Option<Vec<Bytes>> {
    let mut response = parse_changed(response, changes).ok()?;
    let output = remove(&mut response, "output", Value::is_array);
    let status = response["status"].as_str().unwrap_or("completed");
    let last = format!("response.{status}");
    let response = SharedObject::from(response);
    let mut events = Events {
        numbers: Some(0),
        ..Events::default()
    };
    let begun = [
        ("status", Pieces::json(&"in_progress")),
        ("output", Pieces::list([])),
        ("usage", Pieces::json(&Value::Null)),
    ];
    let begun = [("response", response.with(&begun))];
    for kind in ["response.created", "response.in_progress"] {
        events.write(kind, json!({}), &begun);
    }
    let output = output.map(|items| {
        let items = elements(items).enumerate();
        Pieces::list(items.map(|(index, item)| events.item(index, item)))
    });
    let output = output.map(|output| ("output", output));
    let response = response.with(output.as_slice());
    events.write(&last, json!({}), &[("response", response)]);
    Some(leaving(events.out.into_bytes()))
}

/// Takes a field out of an object, if it is there and of this kind.
fn remove(object: &mut Value, field: &str, is_kind: fn(&Value) -> bool) -> Option<Value> {
    let fields = object.as_object_mut()?;
    fields.get(field).filter(|value| is_kind(value))?;
    fields.shift_remove(field)
}

/// The elements of a list, one at a time, and none of what is no list.
fn elements(list: Value) -> impl Iterator<Item = Value> {
    let list = match list {
        Value::Array(list) => list,
        _ => Vec::new(),
    };
    list.into_iter()
}

/// An object of which several events have the long fields.
#[derive(Debug)]
struct SharedObject {
    short: Value,
    /// As JSON.
    long: Vec<(String, Pieces)>,
}

impl From<Value> for SharedObject {
    /// Each field is dropped before the next is written.
    fn from(object: Value) -> Self {
        let fields = match object {
            Value::Object(fields) => fields,
            short => {
                let long = Vec::new();
                return Self { short, long };
            }
        };
        let (mut short, mut long) = (Map::new(), Vec::new());
        for (name, value) in fields {
            let is_short = match &value {
                Value::Array(_) | Value::Object(_) => false,
                Value::String(text) => text.len() < pieces::SHORTEST,
                _ => true,
            };
            if is_short {
                short.insert(name, value);
            } else {
                long.push((name, Pieces::json(&value)));
            }
        }
        let short = Value::Object(short);
        Self { short, long }
    }
}

impl SharedObject {
    /// Returns it as JSON, with these members, which take the place of its own.
    fn with(&self, members: &[(&str, Pieces)]) -> Pieces {
        let stays = |name: &str| members.iter().all(|(member, _)| *member != name);
        let mut short = self.short.clone();
        if let Value::Object(fields) = &mut short {
            fields.retain(|name, _| stays(name));
        }
        let long = self.long.iter().filter(|(name, _)| stays(name));
        let long = long.map(|(name, value)| (name.as_str(), value.clone()));
        let all: Vec<_> = long.chain(members.iter().cloned()).collect();
        Pieces::object(&short, &all)
    }
}

/// Events as they are written.
#[derive(Debug, Default)]
struct Events {
    out: Pieces,
    /// The number of the next event, if they have numbers.
    numbers: Option<u64>,
}

impl Events {
    /// Writes an event with these fields, and members after them.
    fn write(&mut self, kind: &str, about: Value, members: &[(&str, Pieces)]) {
        let mut event = Map::from_iter([("type".to_owned(), kind.into())]);
        if let Some(number) = &mut self.numbers {
            event.insert("sequence_number".to_owned(), (*number).into());
            *number += 1;
        }
        if let Value::Object(about) = about {
            event.extend(about);
        }
        let event = Pieces::object(&Value::Object(event), members);
        // A text takes whatever is written to it.
        let _ = write!(self.out, "event: {kind}\ndata: ");
        self.out.append(event);
        let _ = self.out.write_str("\n\n");
    }

    /// An item of a response, which is returned. What of it streams in pieces is one piece.
    fn item(&mut self, index: usize, mut item: Value) -> Pieces {
        let (place, id) = (json!({"output_index": index}), Pieces::json(&item["id"]));
        let (lists, piece): (&[&str], _) = match item["type"].as_str() {
            Some("message") => (&["content"], None),
            Some("reasoning") => (&["summary", "content"], None),
            Some("function_call") => (&[], Some(("arguments", "function_call_arguments"))),
            Some("custom_tool_call") => (&[], Some(("input", "custom_tool_call_input"))),
            _ => (&[], None),
        };
        let lists: Vec<_> = lists
            .iter()
            .filter_map(|list| Some((*list, remove(&mut item, list, Value::is_array)?)))
            .collect();
        let piece = piece.and_then(|(field, name)| {
            let text = remove(&mut item, field, Value::is_string)?;
            Some((field, name, Pieces::json(&text)))
        });
        let mut begun = Vec::new();
        for (list, _) in &lists {
            begun.push((*list, Pieces::list([])));
        }
        if let Some((field, ..)) = piece {
            begun.push((field, Pieces::json(&"")));
        }
        if item["status"].is_string() {
            begun.push(("status", Pieces::json(&"in_progress")));
        }
        let item = SharedObject::from(item);
        let added = [("item", item.with(&begun))];
        self.write("response.output_item.added", place.clone(), &added);
        let mut members = Vec::new();
        for (list, parts) in lists {
            members.push((list, self.parts(&place, &id, list, parts)));
        }
        if let Some((field, name, text)) = piece {
            self.piece(&place, &id, (name, field), &text);
            members.push((field, text));
        }
        let item = item.with(&members);
        let done = [("item", item.clone())];
        self.write("response.output_item.done", place, &done);
        item
    }

    /// The parts of the item with this id, which are returned.
    fn parts(&mut self, place: &Value, id: &Pieces, list: &str, parts: Value) -> Pieces {
        let (number, part_event) = match list {
            "summary" => ("summary_index", "reasoning_summary_part"),
            _ => ("content_index", "content_part"),
        };
        let mut whole = Vec::new();
        for (at, mut part) in elements(parts).enumerate() {
            let piece = match part["type"].as_str() {
                Some("output_text") => Some(("text", "output_text")),
                Some("refusal") => Some(("refusal", "refusal")),
                Some("summary_text") => Some(("text", "reasoning_summary_text")),
                Some("reasoning_text") => Some(("text", "reasoning_text")),
                _ => None,
            };
            let piece = piece.and_then(|(field, name)| {
                let text = remove(&mut part, field, Value::is_string)?;
                Some((field, name, Pieces::json(&text)))
            });
            let mut place = place.clone();
            place[number] = at.into();
            let part = SharedObject::from(part);
            let mut begun = Vec::new();
            if let Some((field, ..)) = piece {
                begun.push((field, Pieces::json(&"")));
            }
            let added = [("item_id", id.clone()), ("part", part.with(&begun))];
            let event = format!("response.{part_event}.added");
            self.write(&event, place.clone(), &added);
            let mut members = Vec::new();
            if let Some((field, name, text)) = piece {
                self.piece(&place, id, (name, field), &text);
                members.push((field, text));
            }
            let part = part.with(&members);
            let done = [("item_id", id.clone()), ("part", part.clone())];
            self.write(&format!("response.{part_event}.done"), place, &done);
            whole.push(part);
        }
        Pieces::list(whole)
    }

    /// The text of a field, as it streams.
    fn piece(&mut self, place: &Value, id: &Pieces, (name, field): (&str, &str), text: &Pieces) {
        for (end, field) in [("delta", "delta"), ("done", field)] {
            let event = format!("response.{name}.{end}");
            let members = [("item_id", id.clone()), (field, text.clone())];
            self.write(&event, place.clone(), &members);
        }
    }
}

/// In a stream a call has a number.
fn number(message: &mut Value) {
    let calls = message.get_mut("tool_calls").and_then(Value::as_array_mut);
    for (number, call) in calls.into_iter().flatten().enumerate() {
        if let Some(call) = call.as_object_mut() {
            call.entry("index").or_insert(number.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_takes_too_much_memory_becomes_no_events() {
        let lists = "[0],".repeat(70_000);
        let answer = format!("{{\"content\":[],\"choices\":[],\"x\":[{lists}0]}}");
        let answer = Bytes::from(answer);
        let events = as_events(answer.clone(), Vec::new());
        let events = str::from_utf8(&events).unwrap();
        assert!(events.starts_with("data: {\"error\":"), "{events:.99}");
        assert_eq!(as_message_events(answer.clone(), Vec::new()), None);
        assert_eq!(as_response_events(answer, Vec::new()), None);
    }

    #[test]
    fn a_responses_events_share_its_text() {
        let text = "word ".repeat(1 << 12);
        let content = json!([{"type": "output_text", "text": text, "annotations": []}]);
        let response = json!({"output": [{"type": "message", "content": content}]});
        let events = as_response_events(response.to_string().into(), Vec::new()).unwrap();
        let long = events.iter().filter(|piece| piece.len() > text.len());
        let long: Vec<_> = long.map(|piece| piece.as_ptr()).collect();
        assert_eq!(long, [long[0]; 5]);
    }

    #[test]
    fn a_responses_events_share_its_long_fields() {
        let text = "c2Vj".repeat(1 << 12);
        let item = |fields: Value| json!({"output": [fields]});
        for response in [
            item(json!({"type": "reasoning", "encrypted_content": text})),
            item(json!({"type": "image_generation_call", "result": text})),
            item(json!({"type": "code_interpreter_call", "outputs": [{"logs": text}]})),
            json!({"output": [], "instructions": text}),
        ] {
            let events = as_response_events(response.to_string().into(), Vec::new()).unwrap();
            let long = events.iter().filter(|piece| piece.len() > text.len());
            let long: Vec<_> = long.map(|piece| piece.as_ptr()).collect();
            assert_eq!(long, [long[0]; 3], "{response}");
        }
    }

    #[test]
    fn a_responses_items_are_in_its_events() {
        let items = json!([
            {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "c2VjcmV0"},
            {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"query": "hats"}},
            {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": "Ja.", "annotations": [{"url": "a"}]}, {"type": "of_next_year", "x": 1}]},
            {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "look", "arguments": "{}", "status": "completed"},
            {"type": "of_next_year", "data": "x"},
        ]);
        let response = json!({"id": "resp_1", "status": "incomplete", "output": items, "usage": {"input_tokens": 3}});
        let events = |response: String| as_response_events(response.into(), Vec::new());
        assert_eq!(events("[null, null, null, 1]".to_owned()), None);
        let stream = events(response.to_string()).unwrap().concat();
        let stream = str::from_utf8(&stream).unwrap();
        let data = stream
            .lines()
            .filter_map(|line| line.strip_prefix("data: "));
        let events: Vec<Value> = data
            .map(|data| serde_json::from_str(data).unwrap())
            .collect();
        for (number, event) in events.iter().enumerate() {
            assert_eq!(event["sequence_number"], number, "{event}");
        }
        let of = |kind: &str| {
            let events = events.iter().filter(|event| event["type"] == kind);
            events.collect::<Vec<_>>()
        };
        let done = of("response.output_item.done").into_iter();
        let done: Value = done.map(|event| event["item"].clone()).collect();
        assert_eq!(done, items);
        for (event, field, text) in [
            ("reasoning_summary_text", "text", "hm"),
            ("output_text", "text", "Ja."),
            ("function_call_arguments", "arguments", "{}"),
        ] {
            assert_eq!(of(&format!("response.{event}.delta"))[0]["delta"], text);
            assert_eq!(of(&format!("response.{event}.done"))[0][field], text);
        }
        let added = &of("response.output_item.added")[2]["item"];
        assert_eq!(
            (&added["content"], &added["status"]),
            (&json!([]), &json!("in_progress"))
        );
        let last = events.last().unwrap();
        assert_eq!(
            (&last["type"], &last["response"]),
            (&json!("response.incomplete"), &response)
        );
    }
}

//! A whole answer as the events of a stream, for servers that do not stream.

use crate::{
    error,
    json_edit::{self, Change},
    repair::parse_for,
    wire,
};
use bytes::Bytes;
use serde_json::{Map, Value, json};
use std::fmt::Write as _;
use tierbar_core::json::COPIES;

/// How often a text is in the events of a response at most.
const RESPONSE_COPIES: usize = 8;

/// Parses an answer and changes it. Its bytes are dropped, before more is made of it.
fn read(answer: Bytes, changes: Vec<Change>, copies: usize) -> Result<Value, serde_json::Error> {
    let mut fields: Map<String, Value> = parse_for(&answer, copies)?;
    json_edit::apply(&mut fields, changes);
    Ok(Value::Object(fields))
}

/// One event with all of it, and the last one.
pub(crate) fn as_events(answer: Bytes, changes: Vec<Change>) -> Bytes {
    match as_chunk(answer, changes) {
        Ok(event) => format!("data: {event}\n\ndata: [DONE]\n\n").into(),
        Err(error) => error::last_event(&wire::unreadable(&error)).into(),
    }
}

/// A whole answer as one chunk.
pub(crate) fn as_chunk(answer: Bytes, changes: Vec<Change>) -> Result<Value, serde_json::Error> {
    let mut answer = read(answer, changes, COPIES)?;
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
pub(crate) fn as_message_events(message: Bytes, changes: Vec<Change>) -> Option<Bytes> {
    let mut message = read(message, changes, COPIES).ok()?;
    let Value::Array(content) = message.get_mut("content")?.take() else {
        return None;
    };
    message["content"] = json!([]);
    let usage = message["usage"].clone();
    let [reason, stop] = ["stop_reason", "stop_sequence"].map(|name| message[name].take());
    let mut events = Events::default();
    events.write("message_start", Value::from_iter([("message", message)]));
    for (index, mut block) in content.into_iter().enumerate() {
        let deltas = block_pieces(&mut block);
        let place = |name: &str, what: Value| {
            Value::from_iter([("index", Value::from(index)), (name, what)])
        };
        events.write("content_block_start", place("content_block", block));
        for delta in deltas {
            events.write("content_block_delta", place("delta", delta));
        }
        events.write("content_block_stop", json!({"index": index}));
    }
    let delta = json!({"stop_reason": reason, "stop_sequence": stop});
    events.write("message_delta", json!({"delta": delta, "usage": usage}));
    events.write("message_stop", json!({}));
    Some(events.out.into())
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

/// A whole response of OpenAI's as its events.
///
/// `None` for what is no object, or takes too much memory.
pub(crate) fn as_response_events(response: Bytes, changes: Vec<Change>) -> Option<Bytes> {
    let response = read(response, changes, RESPONSE_COPIES).ok()?;
    let mut begun = response.clone();
    begun["status"] = "in_progress".into();
    (begun["output"], begun["usage"]) = (json!([]), Value::Null);
    let mut events = Events {
        numbers: Some(0),
        ..Events::default()
    };
    for kind in ["response.created", "response.in_progress"] {
        events.write(kind, json!({"response": begun}));
    }
    let output = response["output"].as_array().into_iter().flatten();
    for (index, item) in output.enumerate() {
        events.item(index, item);
    }
    let status = response["status"].as_str().unwrap_or("completed");
    let last = format!("response.{status}");
    events.write(&last, json!({"response": response}));
    Some(events.out.into())
}

/// Events as they are written.
#[derive(Debug, Default)]
struct Events {
    out: String,
    /// The number of the next event, if they have numbers.
    numbers: Option<u64>,
}

impl Events {
    fn write(&mut self, kind: &str, about: Value) {
        let mut event = Map::from_iter([("type".to_owned(), kind.into())]);
        if let Some(number) = &mut self.numbers {
            event.insert("sequence_number".to_owned(), (*number).into());
            *number += 1;
        }
        if let Value::Object(about) = about {
            event.extend(about);
        }
        let event = Value::Object(event);
        // A text takes whatever is written to it.
        let _ = write!(self.out, "event: {kind}\ndata: {event}\n\n");
    }

    /// An item of a response. What of it streams in pieces is one piece.
    fn item(&mut self, index: usize, item: &Value) {
        let place = json!({"item_id": item["id"], "output_index": index});
        let (lists, piece): (&[&str], _) = match item["type"].as_str() {
            Some("message") => (&["content"], None),
            Some("reasoning") => (&["summary", "content"], None),
            Some("function_call") => (&[], Some(("arguments", "function_call_arguments"))),
            Some("custom_tool_call") => (&[], Some(("input", "custom_tool_call_input"))),
            _ => (&[], None),
        };
        let mut begun = item.clone();
        for list in lists.iter().filter(|list| item[**list].is_array()) {
            begun[*list] = json!([]);
        }
        let piece = piece.filter(|(field, _)| item[*field].is_string());
        if let Some((field, _)) = piece {
            begun[field] = "".into();
        }
        if item["status"].is_string() {
            begun["status"] = "in_progress".into();
        }
        let added = json!({"output_index": index, "item": begun});
        self.write("response.output_item.added", added);
        for list in lists {
            self.parts(&place, item, list);
        }
        if let Some((field, name)) = piece {
            self.piece(&place, name, field, &item[field]);
        }
        let done = json!({"output_index": index, "item": item});
        self.write("response.output_item.done", done);
    }

    fn parts(&mut self, place: &Value, item: &Value, list: &str) {
        let (number, part_event) = match list {
            "summary" => ("summary_index", "reasoning_summary_part"),
            _ => ("content_index", "content_part"),
        };
        for (at, part) in item[list].as_array().into_iter().flatten().enumerate() {
            let piece = match part["type"].as_str() {
                Some("output_text") => Some(("text", "output_text")),
                Some("refusal") => Some(("refusal", "refusal")),
                Some("summary_text") => Some(("text", "reasoning_summary_text")),
                Some("reasoning_text") => Some(("text", "reasoning_text")),
                _ => None,
            };
            let mut place = place.clone();
            place[number] = at.into();
            let mut about = place.clone();
            about["part"] = part.clone();
            if let Some((field, _)) = piece {
                about["part"][field] = "".into();
            }
            self.write(&format!("response.{part_event}.added"), about.clone());
            if let Some((field, name)) = piece {
                self.piece(&place, name, field, &part[field]);
            }
            about["part"] = part.clone();
            self.write(&format!("response.{part_event}.done"), about);
        }
    }

    fn piece(&mut self, place: &Value, name: &str, field: &str, text: &Value) {
        for (end, field) in [("delta", "delta"), ("done", field)] {
            let mut about = place.clone();
            about[field] = text.clone();
            self.write(&format!("response.{name}.{end}"), about);
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
        let stream = events(response.to_string()).unwrap();
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

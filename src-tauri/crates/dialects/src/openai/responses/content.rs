//! What a message or a tool's result holds, as a chat's text or parts.

use super::tools::kind;
use serde_json::{Map, Value, json};
use tierbar_core::{Error, bad_request};

/// A field that must be there and a text.
pub(super) fn text<'a>(place: &str, item: &'a Value, key: &str) -> Result<&'a str, Error> {
    let text = item[key].as_str();
    text.ok_or_else(|| bad_request(format!("`{place}.{key}` is missing or not a string")))
}

/// The arguments of a call, as JSON in a text.
pub(super) fn arguments(call: &Value) -> String {
    match &call["arguments"] {
        Value::String(arguments) => arguments.clone(),
        Value::Null => "{}".to_owned(),
        other => other.to_string(),
    }
}

/// A text, or parts, as a chat's parts.
pub(super) fn parts(place: &str, key: &str, content: &Value) -> Result<Vec<Value>, Error> {
    match content {
        Value::Null => Ok(Vec::new()),
        Value::String(text) => Ok(vec![text_part(text)]),
        Value::Array(parts) => {
            let place = |index| format!("{place}.{key}[{index}]");
            let parts = parts.iter().enumerate();
            parts.map(|(index, one)| part(&place(index), one)).collect()
        }
        _ => Err(bad_request(format!(
            "`{place}.{key}` must be a string or a list of parts"
        ))),
    }
}

fn part(place: &str, part: &Value) -> Result<Value, Error> {
    Ok(match kind(part) {
        "input_text" | "output_text" | "text" => text_part(text(place, part, "text")?),
        "refusal" => text_part(text(place, part, "refusal")?),
        "input_image" => {
            let url = part["image_url"].as_str().ok_or_else(|| {
                bad_request(format!(
                    "`{place}` has no `image_url`: files are not stored here"
                ))
                .hint("send the image as a data: URI in `image_url`")
            })?;
            let mut image = json!({"url": url});
            if let Some(detail) = part["detail"].as_str() {
                image["detail"] = json!(detail);
            }
            json!({"type": "image_url", "image_url": image})
        }
        "input_audio" => json!({"type": "input_audio", "input_audio": part["input_audio"]}),
        "input_file" => file(place, part)?,
        other => {
            return Err(bad_request(format!(
                "`{place}` has the type \"{other}\", which is not supported"
            ))
            .hint("send input_text, input_image, input_audio or input_file"));
        }
    })
}

/// A file as a chat has it. OpenAI's chats have no `file_url`, which is for servers of other dialects.
fn file(place: &str, part: &Value) -> Result<Value, Error> {
    let is_text = |field: &str| part[field].is_string();
    if !is_text("file_data") && !is_text("file_url") {
        return Err(bad_request(format!(
            "`{place}` has neither `file_data` nor `file_url`: files are not stored here"
        ))
        .hint("send the file as a data: URI in `file_data`"));
    }
    let fields = ["filename", "file_data", "file_url"].into_iter();
    let fields = fields.filter(|field| is_text(field));
    let file: Map<String, Value> = fields
        .map(|field| (field.to_owned(), part[field].clone()))
        .collect();
    // In `json!` the data would be copied again.
    Ok(Value::from_iter([
        ("type", Value::from("file")),
        ("file", file.into()),
    ]))
}

pub(super) fn text_part(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// Text alone as a text: templates of models without eyes know nothing else.
pub(super) fn plain(parts: Vec<Value>) -> Value {
    if parts.iter().any(|part| kind(part) != "text") {
        return parts.into();
    }
    let texts = parts.iter().filter_map(|part| part["text"].as_str());
    texts.collect::<Vec<_>>().join("\n").into()
}

/// Two messages' contents as one's.
pub(super) fn joined(before: Option<Value>, more: Value) -> Value {
    match (before, more) {
        (None | Some(Value::Null), more) => more,
        (Some(Value::String(before)), Value::String(more)) => format!("{before}\n\n{more}").into(),
        (Some(before), more) => {
            let parts = |content| match content {
                Value::Array(parts) => parts,
                Value::String(text) => vec![text_part(&text)],
                _ => Vec::new(),
            };
            [parts(before), parts(more)].concat().into()
        }
    }
}

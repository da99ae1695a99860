//! Files in a chat, as OpenAI's parts. They are sent to servers beyond the user's own network. Others read none, and get a text in the
//! place of each if the client's dialect goes on without them.

use serde_json::{Value, json};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// In the place of a document that the model does not get.
pub const OMITTED: &str = "[A PDF document was omitted: only text documents can be read.]";

pub(crate) const PDF: &str = "application/pdf";
/// How a PDF begins in base64. Some clients send no more than the data.
pub(crate) const PDF_START: &str = "JVBERi";
/// A part with data must have a name.
const UNNAMED: &str = "document.pdf";

/// Whether the server that a chat was sent to last got its files. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct FilesSent(Arc<AtomicBool>);

impl FilesSent {
    pub fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub fn set(&self, sent: bool) {
        self.0.store(sent, Ordering::Relaxed);
    }
}

/// Returns the type, without its parameters, and the data of a `data:` URI in base64.
pub(crate) fn read_data_uri(uri: &str) -> Option<(&str, &str)> {
    let (kind, data) = uri.strip_prefix("data:")?.split_once(";base64,")?;
    Some((kind.split(';').next().unwrap_or(kind), data))
}

/// Whether data has the letters of base64 alone.
pub(crate) fn is_base64(data: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"+/-_=".contains(&byte);
    data.bytes().all(is_letter)
}

/// Returns a file as a part. `data`: in base64.
pub fn part(media_type: &str, data: &str, title: Option<&str>) -> Value {
    let title = title.filter(|title| !title.is_empty());
    let mut name = title.unwrap_or(UNNAMED).to_owned();
    // Some servers read the type from the name.
    if media_type == PDF && !name.to_ascii_lowercase().ends_with(".pdf") {
        name.push_str(".pdf");
    }
    // In `json!` the data would be copied.
    let file = Value::from_iter([
        ("filename", name),
        ("file_data", format!("data:{media_type};base64,{data}")),
    ]);
    Value::from_iter([("type", Value::from("file")), ("file", file)])
}

pub(crate) fn is_file(part: &Value) -> bool {
    part["type"] == "file"
}

/// Returns the text that stands in the place of a file; `None` for another part.
pub fn omission(part: &Value) -> Option<Value> {
    if !is_file(part) {
        return None;
    }
    let name = part["file"]["filename"].as_str();
    let text = match name.filter(|name| *name != UNNAMED) {
        Some(name) => format!("{name}\n\n{OMITTED}"),
        None => OMITTED.to_owned(),
    };
    Some(json!({"type": "text", "text": text}))
}

/// Returns a chat's messages with a text in the place of each file; `None` if there is no file.
pub(crate) fn omit(messages: &Value) -> Option<Value> {
    let messages = messages.as_array()?;
    messages.iter().any(has_file).then(|| {
        let messages = messages.iter().map(|message| match has_file(message) {
            true => without_files(message),
            false => message.clone(),
        });
        messages.collect()
    })
}

fn parts(message: &Value) -> &[Value] {
    message["content"].as_array().map_or(&[], Vec::as_slice)
}

fn has_file(message: &Value) -> bool {
    parts(message).iter().any(is_file)
}

fn without_files(message: &Value) -> Value {
    let fields = message.as_object().into_iter().flatten();
    let fields = fields.map(|(name, value)| {
        let value = match name.as_str() {
            "content" => content(parts(message)),
            _ => value.clone(),
        };
        (name.clone(), value)
    });
    fields.collect()
}

/// Text alone is a text, as in messages that never had a file.
fn content(parts: &[Value]) -> Value {
    let parts = parts.iter();
    let mut parts: Vec<Value> = parts
        .map(|part| omission(part).unwrap_or_else(|| part.clone()))
        .collect();
    match parts.as_mut_slice() {
        [only] if only["type"] == "text" => only["text"].take(),
        _ => parts.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_a_name_with_its_types_ending() {
        for (title, name) in [
            (None, "document.pdf"),
            (Some(""), "document.pdf"),
            (Some("Towers"), "Towers.pdf"),
            (Some("Towers.PDF"), "Towers.PDF"),
        ] {
            assert_eq!(
                part(PDF, "AAAA", title),
                json!({"type": "file", "file": {"filename": name, "file_data": "data:application/pdf;base64,AAAA"}})
            );
        }
    }

    #[test]
    fn a_text_stands_in_the_place_of_each_file() {
        let user = |content: Value| json!({"role": "user", "content": content});
        let text = |text: &str| json!({"type": "text", "text": text});
        let named = part(PDF, "AAAA", Some("a.pdf"));
        let unnamed = part(PDF, "AAAA", None);
        let image = json!({"type": "image_url", "image_url": {"url": "data:,"}});
        let messages = json!([
            user(json!("Hi")),
            user(json!([unnamed])),
            user(json!([named, image, text("Sum it up.")])),
        ]);
        let title = format!("a.pdf\n\n{OMITTED}");
        assert_eq!(
            omit(&messages),
            Some(json!([
                user(json!("Hi")),
                user(json!(OMITTED)),
                user(json!([text(&title), image, text("Sum it up.")])),
            ]))
        );
        for none in [json!([user(json!("Hi")), user(json!([image]))]), json!(7)] {
            assert_eq!(omit(&none), None, "{none}");
        }
    }
}

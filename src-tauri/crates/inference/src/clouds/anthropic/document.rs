//! A file of a chat as Anthropic's document.

use crate::files::{PDF, PDF_START, read_data_uri};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde::Deserialize;
use serde_json::Value;
use tierbar_core::{Error, bad_request, config::is_url};

/// A file part's file.
#[derive(Debug, Deserialize)]
pub(super) struct File {
    filename: Option<String>,
    file_data: Option<String>,
    /// Of OpenAI's responses. Chats there have none.
    file_url: Option<String>,
}

/// The most letters of a title.
const LONGEST_TITLE: usize = 500;

impl File {
    pub(super) fn into_block(self) -> Result<Value, Error> {
        let source = match (self.file_data, self.file_url) {
            (Some(data), _) => data_source(data)?,
            (None, Some(url)) => url_source(url)?,
            (None, None) => {
                let message = "a file has no `file_data`: files are not stored here";
                return Err(bad_request(message).hint("send it as a data: URI in `file_data`"));
            }
        };
        let mut block = Value::from_iter([("type", Value::from("document")), ("source", source)]);
        if let Some(name) = self.filename.filter(|name| !name.is_empty()) {
            let title: String = name.chars().take(LONGEST_TITLE).collect();
            block["title"] = title.into();
        }
        Ok(block)
    }
}

fn url_source(url: String) -> Result<Value, Error> {
    if is_url(&url) {
        return Ok(Value::from_iter([("type", "url".to_owned()), ("url", url)]));
    }
    Err(bad_request("`file_url` is not a URL"))
}

/// A PDF stays in base64; a text is text there.
fn data_source(mut data: String) -> Result<Value, Error> {
    let (media_type, start) = media_type(&data)?;
    data.drain(..start);
    if media_type == PDF {
        // In `json!` the data would be copied.
        return Ok(Value::from_iter([
            ("type", "base64".to_owned()),
            ("media_type", media_type),
            ("data", data),
        ]));
    }
    if !media_type.starts_with("text/") {
        let message = format!("a file has the type \"{media_type:.100}\"");
        return Err(
            bad_request(message).hint("send PDF or text to a tier with Anthropic's dialect")
        );
    }
    let bytes = BASE64_STANDARD.decode(&data).ok();
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    let text = text.ok_or_else(|| bad_request("a file's text is not UTF-8 in base64"))?;
    Ok(Value::from_iter([
        ("type", "text".to_owned()),
        ("media_type", "text/plain".to_owned()),
        ("data", text),
    ]))
}

/// The type of a file's data, and where the data begins.
fn media_type(data: &str) -> Result<(String, usize), Error> {
    if data.starts_with(PDF_START) {
        return Ok((PDF.to_owned(), 0));
    }
    let (kind, encoded) = read_data_uri(data)
        .ok_or_else(|| bad_request("`file_data` is not a data: URI in base64"))?;
    Ok((kind.to_ascii_lowercase(), data.len() - encoded.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tierbar_core::Code;

    fn block(file: Value) -> Result<Value, Error> {
        let file: File = serde_json::from_value(file).unwrap();
        file.into_block()
    }

    #[test]
    fn pdfs_texts_and_addresses_are_documents() {
        let pdf = json!({"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="});
        let text = json!({"type": "text", "media_type": "text/plain", "data": "Grüße"});
        for (data, source) in [
            ("data:application/pdf;base64,JVBERi0=", &pdf),
            ("JVBERi0=", &pdf),
            ("data:text/plain;charset=utf-8;base64,R3LDvMOfZQ==", &text),
            ("data:text/markdown;base64,R3LDvMOfZQ==", &text),
        ] {
            let file = json!({"filename": "a.b", "file_data": data, "file_id": null});
            assert_eq!(
                block(file).unwrap(),
                json!({"type": "document", "source": source, "title": "a.b"})
            );
        }
        let url = "https://a.example/a.pdf";
        assert_eq!(
            block(json!({"file_url": url})).unwrap(),
            json!({"type": "document", "source": {"type": "url", "url": url}})
        );
    }

    #[test]
    fn a_long_name_is_cut_to_a_title() {
        let file = json!({"filename": "é".repeat(600), "file_data": "JVBERi0="});
        let title = block(file).unwrap()["title"].as_str().map(str::to_owned);
        assert_eq!(title, Some("é".repeat(LONGEST_TITLE)));
    }

    #[test]
    fn other_files_are_refused() {
        for (file, says) in [
            (json!({"file_id": "file_1"}), "no `file_data`"),
            (json!({"file_data": "AAAA"}), "data: URI"),
            (json!({"file_data": "https://a.example/a.pdf"}), "data: URI"),
            (
                json!({"file_data": "data:application/zip;base64,AAAA"}),
                "\"application/zip\"",
            ),
            (
                json!({"file_data": "data:text/plain;base64,/w=="}),
                "not UTF-8",
            ),
            (json!({"file_url": "file:///etc/passwd"}), "not a URL"),
        ] {
            let error = block(file).unwrap_err();
            assert_eq!(error.code, Code::BadRequest);
            assert!(error.message.contains(says), "{error}");
        }
    }
}

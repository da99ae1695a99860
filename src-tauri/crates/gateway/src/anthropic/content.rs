//! What a message holds: a text or blocks, as OpenAI's messages and parts.

use crate::dialect;
use serde::Deserialize;
use serde_json::{Value, json};
use tierbar_core::{Code, Error};

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Content {
    Text(String),
    Blocks(Vec<Value>),
}

/// A block. Kinds that are not named here are not known.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block {
    Text {
        text: String,
    },
    Image {
        source: Source,
    },
    Document {
        source: Source,
        #[serde(default)]
        title: Option<String>,
    },
    ToolUse {
        id: String,
        name: String,
        #[serde(default)]
        input: Value,
    },
    ToolResult {
        tool_use_id: String,
        #[serde(default)]
        content: Option<Content>,
        #[serde(default)]
        is_error: Option<bool>,
    },
    Thinking {
        thinking: String,
    },
    /// Only Anthropic's servers can read it.
    RedactedThinking {},
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Source {
    Base64 { media_type: String, data: String },
    Url { url: String },
    Text { data: String },
    Content { content: Content },
}

impl Content {
    /// # Errors
    /// `BadRequest` for what is not text.
    pub(super) fn text(self) -> Result<String, Error> {
        let blocks = match self {
            Self::Text(text) => return Ok(text),
            Self::Blocks(blocks) => blocks,
        };
        let mut texts = Vec::new();
        for block in blocks {
            match read(block)? {
                Block::Text { text } => texts.push(text),
                _ => return Err(bad("there is place for text only here")),
            }
        }
        Ok(texts.join("\n\n"))
    }
}

/// One message of Anthropic's as one or several of OpenAI's: results of tools are messages of their own there, and come before
/// what the user says to them.
///
/// # Errors
/// `BadRequest` for blocks that are not known, or not in such a message.
pub(super) fn into_messages(
    role: &str,
    content: Content,
    messages: &mut Vec<Value>,
) -> Result<(), Error> {
    let blocks = match content {
        Content::Text(text) => {
            messages.push(json!({"role": role, "content": text}));
            return Ok(());
        }
        Content::Blocks(blocks) => blocks,
    };
    if role == "assistant" {
        messages.push(said(blocks)?);
        return Ok(());
    }
    let mut parts = Vec::new();
    for block in blocks {
        match read(block)? {
            Block::ToolResult {
                tool_use_id,
                content,
                is_error,
            } => {
                let result = result(content, is_error == Some(true), &mut parts)?;
                messages
                    .push(json!({"role": "tool", "tool_call_id": tool_use_id, "content": result}));
            }
            block => parts.extend(part(block)?),
        }
    }
    if !parts.is_empty() {
        messages.push(json!({"role": role, "content": plain(parts)}));
    }
    Ok(())
}

/// A system message within the conversation, as Claude Code sends it.
pub(super) fn remind(text: &str, messages: &mut Vec<Value>) {
    let reminder = dialect::reminder(text);
    let last = messages
        .last_mut()
        .map(|last| (last["role"] == "system", last));
    match last {
        Some((true, last)) => {
            let begun = last["content"].as_str().unwrap_or_default();
            last["content"] = format!("{begun}\n\n{text}").into();
        }
        Some((false, last)) if last["role"] == "user" => match &mut last["content"] {
            Value::Array(parts) => parts.push(json!({"type": "text", "text": reminder})),
            said => *said = format!("{}\n\n{reminder}", said.as_str().unwrap_or_default()).into(),
        },
        _ => messages.push(json!({"role": "user", "content": reminder})),
    }
}

/// What the model said.
fn said(blocks: Vec<Value>) -> Result<Value, Error> {
    let (mut text, mut thoughts, mut calls) = (String::new(), String::new(), Vec::new());
    for block in blocks {
        match read(block)? {
            Block::Text { text: more } => text.push_str(&more),
            Block::Thinking { thinking } => thoughts.push_str(&thinking),
            Block::RedactedThinking {} => {}
            Block::ToolUse { id, name, input } => {
                let function = json!({"name": name, "arguments": input.to_string()});
                calls.push(json!({"id": id, "type": "function", "function": function}));
            }
            _ => {
                return Err(bad(
                    "an assistant's message holds text, thinking and tool uses",
                ));
            }
        }
    }
    let mut message = json!({"role": "assistant", "content": text});
    if !thoughts.is_empty() {
        message["reasoning_content"] = thoughts.into();
    }
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    Ok(message)
}

/// A tool's result as a text. OpenAI's have no images: these follow as the user's.
fn result(content: Option<Content>, failed: bool, parts: &mut Vec<Value>) -> Result<String, Error> {
    let mut texts = Vec::new();
    match content {
        None => {}
        Some(Content::Text(text)) => texts.push(text),
        Some(Content::Blocks(blocks)) => {
            for block in blocks {
                match read(block)? {
                    Block::Text { text } => texts.push(text),
                    block => parts.extend(part(block)?),
                }
            }
        }
    }
    let text = texts.join("\n");
    Ok(if failed {
        format!("Error: {text}")
    } else {
        text
    })
}

fn part(block: Block) -> Result<Option<Value>, Error> {
    let text = |text: String| Some(json!({"type": "text", "text": text}));
    Ok(match block {
        Block::Text { text: said } => text(said),
        Block::Image { source } => {
            let url = match source {
                Source::Base64 { media_type, data } => format!("data:{media_type};base64,{data}"),
                Source::Url { url } => url,
                _ => return Err(bad("an image's source is base64 or a URL")),
            };
            Some(json!({"type": "image_url", "image_url": {"url": url}}))
        }
        Block::Document { source, title } => {
            let data = match source {
                Source::Text { data } => data,
                Source::Content { content } => content.text()?,
                _ => {
                    return Err(bad("documents are taken as plain text only")
                        .hint("send the document's text in a text block"));
                }
            };
            text(match title {
                Some(title) => format!("{title}\n\n{data}"),
                None => data,
            })
        }
        Block::Thinking { .. } | Block::RedactedThinking {} => None,
        Block::ToolUse { .. } | Block::ToolResult { .. } => {
            return Err(bad(
                "a block about a tool is in a message where none can be",
            ));
        }
    })
}

/// Text alone as a text: templates of models without eyes know nothing else.
fn plain(mut parts: Vec<Value>) -> Value {
    match parts.as_mut_slice() {
        [only] if only["type"] == "text" => only["text"].take(),
        _ => parts.into(),
    }
}

fn read(block: Value) -> Result<Block, Error> {
    serde_json::from_value(block).map_err(|error| bad(format!("a block cannot be read: {error}")))
}

fn bad(message: impl Into<String>) -> Error {
    Error::new(Code::BadRequest, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(role: &str, blocks: Value) -> Result<Vec<Value>, Error> {
        let mut messages = Vec::new();
        into_messages(role, serde_json::from_value(blocks).unwrap(), &mut messages)?;
        Ok(messages)
    }

    #[test]
    fn results_of_tools_come_first_and_their_images_with_what_is_said() {
        let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}});
        let blocks = json!([
            {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "4"}, image]},
            {"type": "tool_result", "tool_use_id": "b", "content": "no file", "is_error": true},
            {"type": "tool_result", "tool_use_id": "c"},
            {"type": "text", "text": "And now?"},
        ]);
        assert_eq!(
            messages("user", blocks).unwrap(),
            [
                json!({"role": "tool", "tool_call_id": "a", "content": "4"}),
                json!({"role": "tool", "tool_call_id": "b", "content": "Error: no file"}),
                json!({"role": "tool", "tool_call_id": "c", "content": ""}),
                json!({"role": "user", "content": [
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
                    {"type": "text", "text": "And now?"},
                ]}),
            ]
        );
    }

    #[test]
    fn what_the_model_said_is_one_message() {
        let blocks = json!([
            {"type": "thinking", "thinking": "hm", "signature": ""},
            {"type": "redacted_thinking", "data": "…"},
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "a", "name": "look", "input": {"at": 1}},
        ]);
        let function = json!({"name": "look", "arguments": "{\"at\":1}"});
        assert_eq!(
            messages("assistant", blocks).unwrap(),
            [json!({
                "role": "assistant", "content": "I look.", "reasoning_content": "hm",
                "tool_calls": [{"id": "a", "type": "function", "function": function}],
            })]
        );
    }

    #[test]
    fn text_alone_is_a_text_and_a_documents_text_is_text() {
        let blocks =
            json!([{"type": "text", "text": "Hi", "cache_control": {"type": "ephemeral"}}]);
        assert_eq!(messages("user", blocks).unwrap()[0]["content"], "Hi");
        let document = json!([{"type": "document", "title": "T", "source": {"type": "text", "media_type": "text/plain", "data": "D"}}]);
        assert_eq!(messages("user", document).unwrap()[0]["content"], "T\n\nD");
    }

    #[test]
    fn what_has_no_place_is_refused_by_name() {
        let pdf = json!([{"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "AAAA"}}]);
        for (role, blocks) in [
            (
                "user",
                json!([{"type": "tool_use", "id": "a", "name": "look", "input": {}}]),
            ),
            (
                "assistant",
                json!([{"type": "tool_result", "tool_use_id": "a"}]),
            ),
            ("user", json!([{"type": "hologram"}])),
            ("user", json!([{"text": "no type"}])),
            ("user", json!([7])),
            ("user", pdf),
        ] {
            let error = messages(role, blocks.clone()).unwrap_err();
            assert_eq!(error.code, Code::BadRequest, "{blocks}");
        }
    }
}

//! What a message holds: a text or blocks, as OpenAI's messages and parts.

use serde::Deserialize;
use serde_json::{Value, json};
use tierbar_chats::context::summary_note;
use tierbar_core::{Error, bad_request};
use tierbar_inference::files::{self, OMITTED};
use utoipa::ToSchema;

/// A text, or blocks: texts, images, documents, and calls and results of tools.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = MessageBlocks)]
#[serde(untagged)]
pub(super) enum Content {
    Text(String),
    #[schema(value_type = Vec<Object>)]
    Blocks(Vec<Value>),
}

/// The kinds of blocks that are read.
const READ: [&str; 8] = [
    "text",
    "image",
    "document",
    "tool_use",
    "tool_result",
    "thinking",
    "search_result",
    "compaction",
];
/// The kinds that are left out: thoughts that only Anthropic's servers can read, what they did for a tool of theirs, and what is for them.
const LEFT_OUT_KINDS: [&str; 19] = [
    "redacted_thinking",
    "server_tool_use",
    "web_search_tool_result",
    "web_fetch_tool_result",
    "advisor_tool_result",
    "code_execution_tool_result",
    "bash_code_execution_tool_result",
    "text_editor_code_execution_tool_result",
    "tool_search_tool_result",
    "tool_reference",
    "tool_addition",
    "tool_removal",
    "mcp_tool_use",
    "mcp_tool_result",
    "mcp_tool_listing",
    "container_upload",
    "browser_state",
    "connector_text",
    "fallback",
];

/// A block of one of these kinds.
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
        title: Option<String>,
    },
    ToolUse {
        id: String,
        name: String,
        input: Option<Value>,
    },
    ToolResult {
        tool_use_id: String,
        content: Option<Content>,
        is_error: Option<bool>,
    },
    Thinking {
        thinking: String,
    },
    SearchResult {
        source: String,
        title: String,
        content: Content,
    },
    /// A summary in the place of what was said; without one, nothing.
    Compaction {
        content: Option<String>,
        encrypted_content: Option<String>,
    },
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Source {
    Base64 {
        media_type: String,
        data: String,
    },
    Url {
        url: String,
    },
    Text {
        data: String,
    },
    Content {
        content: Content,
    },
    /// A file that its servers keep.
    #[serde(other)]
    Other,
}

impl Content {
    /// What is not a plain text.
    pub(super) fn blocks(&self) -> &[Value] {
        match self {
            Self::Text(_) => &[],
            Self::Blocks(blocks) => blocks,
        }
    }

    pub(super) fn text(self) -> Result<String, Error> {
        let blocks = match self {
            Self::Text(text) => return Ok(text),
            Self::Blocks(blocks) => blocks,
        };
        let mut texts = Vec::new();
        for block in blocks {
            match read(block)? {
                Block::Text { text } => texts.push(text),
                _ => return Err(bad_request("only text is allowed here")),
            }
        }
        Ok(texts.join("\n\n"))
    }
}

/// One message of Anthropic's as one or several of OpenAI's: results of tools are messages of their own there, and come before
/// what the user says to them.
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
        messages.push(assistant_message(blocks)?);
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
    let reminder = crate::reminder(text);
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

/// The model's text.
fn assistant_message(blocks: Vec<Value>) -> Result<Value, Error> {
    let (mut text, mut thoughts, mut calls) = (String::new(), String::new(), Vec::new());
    for block in blocks {
        match read(block)? {
            Block::Text { text: more } => text.push_str(&more),
            Block::Thinking { thinking } => thoughts.push_str(&thinking),
            Block::Compaction {
                content,
                encrypted_content,
            } => text.extend(summary(content, encrypted_content.as_deref())?),
            Block::Other => {}
            Block::ToolUse { id, name, input } => {
                let arguments = input.unwrap_or_else(|| json!({})).to_string();
                let function = json!({"name": name, "arguments": arguments});
                calls.push(json!({"id": id, "type": "function", "function": function}));
            }
            _ => {
                return Err(bad_request(
                    "an assistant message can contain text, thinking and tool uses only",
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

/// A tool's result as a text. OpenAI's have no images and files: these follow as the user's.
fn result(content: Option<Content>, failed: bool, parts: &mut Vec<Value>) -> Result<String, Error> {
    let mut texts = Vec::new();
    match content {
        None => {}
        Some(Content::Text(text)) => texts.push(text),
        Some(Content::Blocks(blocks)) => {
            for block in blocks {
                match read(block)? {
                    Block::Text { text } => texts.push(text),
                    block => match part(block)? {
                        Some(part) if part["type"] == "text" => {
                            texts.extend(part["text"].as_str().map(str::to_owned));
                        }
                        part => parts.extend(part),
                    },
                }
            }
        }
    }
    let text = texts.join("\n");
    Ok(match failed {
        true => format!("Error: {text}"),
        false => text,
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
                _ => return Err(bad_request("an image source must be base64 or a URL")),
            };
            Some(json!({"type": "image_url", "image_url": {"url": url}}))
        }
        Block::Document {
            source: Source::Base64 { media_type, data },
            title,
        } => Some(files::part(&media_type, &data, title.as_deref())),
        Block::Document { source, title } => {
            let data = match source {
                Source::Text { data } => data,
                Source::Content { content } => content.text()?,
                _ => OMITTED.to_owned(),
            };
            text(match title {
                Some(title) => format!("{title}\n\n{data}"),
                None => data,
            })
        }
        Block::SearchResult {
            source,
            title,
            content,
        } => text(format!("{title}\n{source}\n\n{}", content.text()?)),
        Block::Compaction {
            content,
            encrypted_content,
        } => summary(content, encrypted_content.as_deref())?.and_then(text),
        Block::Thinking { .. } | Block::Other => None,
        Block::ToolUse { .. } | Block::ToolResult { .. } => {
            return Err(bad_request("a tool block is not allowed in this message"));
        }
    })
}

/// One block of a user's message as a part of OpenAI's, with a text in the place of a file; `None` for a kind that is left out.
///
/// # Errors
/// `BadRequest` for a block that cannot be read, or not in such a message.
pub fn part_of_block(block: Value) -> Result<Option<Value>, Error> {
    let part = part(read(block)?)?;
    Ok(part.map(|part| files::omission(&part).unwrap_or(part)))
}

/// Text alone as a text: templates of models without eyes know nothing else.
fn plain(mut parts: Vec<Value>) -> Value {
    match parts.as_mut_slice() {
        [only] if only["type"] == "text" => only["text"].take(),
        _ => parts.into(),
    }
}

fn summary(content: Option<String>, sealed: Option<&str>) -> Result<Option<String>, Error> {
    match (content, sealed) {
        (Some(content), _) => Ok(Some(summary_note(&content))),
        (None, Some(_)) => Err(bad_request(
            "a compaction block has a summary that only Anthropic's servers can read",
        )
        .hint("send the conversation itself")),
        (None, None) => Ok(None),
    }
}

/// What of a request the model does not get.
#[derive(Debug, Clone)]
pub(super) struct LeftOut {
    /// Its place and its type.
    pub(super) what: String,
    /// A server that takes files gets it.
    pub(super) is_file: bool,
}

impl LeftOut {
    /// Names all that was left out of a request whose server got its files, or did not.
    pub(super) fn named(all: &[Self], files_sent: bool) -> Vec<&str> {
        let left_out = all.iter().filter(|one| !(files_sent && one.is_file));
        left_out.map(|one| one.what.as_str()).collect()
    }
}

/// Adds the blocks whose content the model does not get.
pub(super) fn add_left_out(place: &str, blocks: &[Value], left_out: &mut Vec<LeftOut>) {
    for (at, block) in blocks.iter().enumerate() {
        let kind = block.get("type").and_then(Value::as_str);
        let source = block.get("source").and_then(|source| source.get("type"));
        let is_read = match kind {
            // Thoughts are the model's own, and no part of what it is asked.
            Some("redacted_thinking") => true,
            Some("document") => source.is_none_or(|source| source == "text" || source == "content"),
            kind => !kind.is_some_and(|kind| LEFT_OUT_KINDS.contains(&kind)),
        };
        match (kind, block.get("content")) {
            (Some(kind), _) if !is_read => left_out.push(LeftOut {
                what: format!("{place}[{at}]: {kind}"),
                is_file: kind == "document" && source.is_some_and(|source| source == "base64"),
            }),
            (Some("tool_result"), Some(Value::Array(inner))) => {
                let place = format!("{place}[{at}].content");
                add_left_out(&place, inner, left_out);
            }
            _ => {}
        }
    }
}

/// Refuses blocks of kinds that are not known: what they say would be lost without a sign. `place`: where they are in the request.
pub(super) fn check_kinds(place: &str, blocks: &[Value]) -> Result<(), Error> {
    for (at, block) in blocks.iter().enumerate() {
        // What has no kind is refused where it is read.
        let kind = block.get("type").and_then(Value::as_str);
        let known = |kind: &str| READ.contains(&kind) || LEFT_OUT_KINDS.contains(&kind);
        if let Some(unknown) = kind.filter(|kind| !known(kind)) {
            return Err(
                bad_request(format!("`{place}[{at}]` has the type \"{unknown:.40}\""))
                    .hint(format!("send one of {}", READ.join(", "))),
            );
        }
        if let Some(Value::Array(inner)) =
            block.get("content").filter(|_| kind == Some("tool_result"))
        {
            check_kinds(&format!("{place}[{at}].content"), inner)?;
        }
    }
    Ok(())
}

fn read(block: Value) -> Result<Block, Error> {
    serde_json::from_value(block)
        .map_err(|error| bad_request(format!("a content block is not valid: {error}")))
}

#[cfg(test)]
mod tests;

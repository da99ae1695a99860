//! A server's tools, and what their results are for a model.

use data_encoding::HEXLOWER;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tierbar_core::json::memory_of;

/// The most tools that a server may list.
pub(crate) const MOST_LISTED: usize = 1_000;
/// The most memory that the tools of a server may take.
pub(crate) const MOST_MEMORY: usize = 16 << 20;
/// The largest schema of one tool, in bytes of JSON. A model reads all of them before its first word.
const SCHEMA_BYTES: usize = 16 << 10;
/// As much of a description is kept, in characters.
const DESCRIPTION: usize = 2_000;
const NAME_BYTES: usize = 64;

/// A tool that can be offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool {
    pub name: String,
    /// The server's words.
    pub description: String,
    /// A JSON schema, the server's as well.
    pub parameters: Value,
    /// Another text once the server has changed any of these.
    pub definition: String,
}

/// What a server lists.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    pub tools: Vec<Tool>,
    /// Tools that no model can call, and why, in a sentence.
    pub left_out: Vec<(String, &'static str)>,
}

impl Listing {
    /// Adds a tool, and returns the memory that it takes. Of two with one name the first counts.
    pub(crate) fn add(&mut self, tool: Value) -> usize {
        let listed = rmcp::model::Tool::deserialize(&tool);
        match listed
            .map_err(|_| NO_FORM)
            .and_then(|tool| Tool::from_listed(&tool))
        {
            Ok(tool) if self.tools.iter().any(|known| known.name == tool.name) => 0,
            Ok(tool) => {
                let memory = tool.memory();
                self.tools.push(tool);
                memory
            }
            Err(why) => {
                let name = tool["name"].as_str().unwrap_or_default();
                let name = name.chars().filter(|letter| !letter.is_control());
                self.left_out.push((name.take(NAME_BYTES).collect(), why));
                0
            }
        }
    }
}

const NO_FORM: &str =
    "It is not defined as the protocol says: it needs a name and an `inputSchema`.";
const NO_NAME: &str =
    "Its name has other characters than letters, digits, `_`, `-` and `.`, or more than 64.";
const TOO_LARGE: &str = "Its schema is larger than 16 KiB.";

impl Tool {
    fn memory(&self) -> usize {
        self.description.len() + memory_of(&self.parameters)
    }

    /// Reads what a server lists.
    ///
    /// # Errors
    /// Why no model can call it.
    fn from_listed(tool: &rmcp::model::Tool) -> Result<Self, &'static str> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
        let name = &*tool.name;
        if name.is_empty() || name.len() > NAME_BYTES || !name.bytes().all(plain) {
            return Err(NO_NAME);
        }
        let parameters = Value::Object((*tool.input_schema).clone());
        if parameters.to_string().len() > SCHEMA_BYTES {
            return Err(TOO_LARGE);
        }
        let description = tool.description.as_deref().unwrap_or_default();
        // Whole: what is not shown may not change either.
        let mut whole = json!([name, tool.title, description, parameters]);
        // A server may list the same fields in another order.
        whole.sort_all_objects();
        Ok(Self {
            name: name.to_owned(),
            description: description.chars().take(DESCRIPTION).collect(),
            parameters,
            definition: HEXLOWER.encode(&Sha256::digest(whole.to_string())),
        })
    }
}

/// What a model reads of a result.
pub(crate) fn text_of(result: &CallToolResult) -> String {
    let blocks = result.content.iter().map(|block| match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => format!("[an image of type {}]", image.mime_type),
        ContentBlock::Audio(audio) => format!("[a sound of type {}]", audio.mime_type),
        ContentBlock::Resource(resource) => match &resource.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => format!("{uri}\n{text}"),
            ResourceContents::BlobResourceContents { uri, .. } => format!("[a file, {uri}]"),
            _ => "[something of an unknown kind]".to_owned(),
        },
        ContentBlock::ResourceLink(link) => format!("[{}, {}]", link.name, link.uri),
        _ => "[something of an unknown kind]".to_owned(),
    });
    let text = blocks.collect::<Vec<_>>().join("\n\n");
    match (&result.structured_content, text.is_empty()) {
        (Some(structured), true) => structured.to_string(),
        (None, true) => "[it ended without a result]".to_owned(),
        (_, false) => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(value: Value) -> Option<Tool> {
        let mut listing = Listing::default();
        listing.add(value);
        listing.tools.pop()
    }

    #[test]
    fn a_change_of_what_a_tool_says_is_seen() {
        let read = |description: &str, schema: Value| {
            let tool = tool(json!({
                "name": "a", "description": description, "inputSchema": schema,
                "annotations": {"readOnlyHint": true}
            }));
            tool.unwrap().definition
        };
        let first = read(
            "x",
            json!({"type": "object", "properties": {"a": {}, "b": {}}}),
        );
        let reordered = json!({"properties": {"b": {}, "a": {}}, "type": "object"});
        assert_eq!(read("x", reordered), first);
        assert_ne!(
            read(
                "y",
                json!({"type": "object", "properties": {"a": {}, "b": {}}})
            ),
            first
        );
        assert_ne!(
            read(
                "x",
                json!({"type": "object", "properties": {"a": {}, "c": {}}})
            ),
            first
        );
        // Beyond what is shown.
        let long = "x".repeat(DESCRIPTION + 1);
        let schema = json!({"type": "object"});
        assert_ne!(
            read(&(long.clone() + "y"), schema.clone()),
            read(&long, schema)
        );
    }

    #[test]
    fn what_no_model_can_call_is_left_out() {
        let named = |name: &str| tool(json!({"name": name, "inputSchema": {"type": "object"}}));
        assert!(named("issues.list-all_2").is_some());
        for name in ["", "a b", "a\n", "a/b", "ä", &"x".repeat(65)] {
            assert_eq!(named(name), None, "{name:?}");
        }
        let large = json!({"type": "object", "description": "x".repeat(SCHEMA_BYTES)});
        assert_eq!(tool(json!({"name": "a", "inputSchema": large})), None);
    }

    #[test]
    fn a_result_is_text() {
        let text = |value: Value| text_of(&serde_json::from_value(value).unwrap());
        assert_eq!(
            text(json!({"content": [
                {"type": "text", "text": "one"},
                {"type": "image", "data": "AAAA", "mimeType": "image/png"},
                {"type": "resource", "resource": {"uri": "file:///a", "text": "two"}},
                {"type": "resource_link", "uri": "file:///b", "name": "b"}
            ]})),
            "one\n\n[an image of type image/png]\n\nfile:///a\ntwo\n\n[b, file:///b]"
        );
        assert_eq!(
            text(json!({"content": [], "structuredContent": {"a": 1}})),
            "{\"a\":1}"
        );
        assert_eq!(text(json!({"content": []})), "[it ended without a result]");
    }
}

//! A chat of Open WebUI's export: `chat.history.messages` has the messages of a tree by their ids, each with its `parentId`, and
//! `chat.history.currentId` is the last one of the shown branch. Reasoning and calls of tools are `<details>` within the content.

use super::{
    ImportedChat, Omissions, OmittedPart, answer_with_tools, millis, role, source, summary, text,
    tree::{LARGEST, Node, Tree},
};
use crate::{AROUND_A_CALL, Chat, Part, Role, text_parts};
use serde_json::Value;

/// A chat with more calls of tools is larger than one can be.
pub(super) const MOST_CALLS: usize = LARGEST / AROUND_A_CALL;

pub(super) fn read(value: &Value, omissions: &mut Omissions) -> ImportedChat {
    let chat = &value["chat"];
    let history = &chat["history"];
    let mut tree = Tree::default();
    let instructions = [&chat["params"]["system"], &chat["system"]];
    let mut instructions = instructions.into_iter().filter_map(|value| value.as_str());
    let root = instructions
        .find(|text| !text.trim().is_empty())
        .map(|text| tree.add(None, Role::System, text_parts(text.to_owned()), None));
    let leaf = if let Some(messages) = history["messages"].as_object() {
        let nodes = messages.iter().map(|(id, message)| {
            let node = node(message, omissions);
            (id.as_str(), message["parentId"].as_str(), node)
        });
        let nodes = nodes.collect();
        let current = history["currentId"].as_str();
        let current = current.or(history["current_id"].as_str());
        tree.grow(root, nodes, current)
    } else {
        list(&chat["messages"], &mut tree, root, omissions)
    };
    // Instructions alone are no chat.
    let has_more = tree.messages.len() > usize::from(root.is_some());
    let title = [text(value, "title"), text(chat, "title")];
    let title = title.into_iter().find(|title| !title.is_empty());
    let created = millis(&value["created_at"]).or(millis(&chat["timestamp"]));
    ImportedChat {
        source: source("open-webui", value["id"].as_str()),
        chat: Chat {
            summary: summary(title.unwrap_or_default(), value["pinned"] == true),
            leaf,
            messages: if has_more { tree.messages } else { Vec::new() },
        },
        created_ms: created,
        updated_ms: millis(&value["updated_at"]).or(created),
    }
}

/// An older export has the shown branch only.
fn list(
    messages: &Value,
    tree: &mut Tree,
    root: Option<u64>,
    omissions: &mut Omissions,
) -> Option<u64> {
    let mut last = root;
    for message in messages.as_array().into_iter().flatten() {
        if tree.is_full() {
            break;
        }
        if let Node::Message { role, parts, model } = node(message, omissions) {
            last = Some(tree.add(last, role, parts, model));
        }
    }
    last
}

fn node(message: &Value, omissions: &mut Omissions) -> Node {
    let before = omissions.attached();
    for file in message["files"].as_array().into_iter().flatten() {
        let omitted = if text(file, "type") == "image" {
            OmittedPart::Images
        } else {
            OmittedPart::Files
        };
        omissions.add(omitted, 1);
    }
    let Some(role) = role(message) else {
        return Node::skipped();
    };
    let content = text(message, "content");
    let mut parts = if role == Role::Assistant {
        answer_of(content, omissions)
    } else {
        text_parts(content.to_owned())
    };
    if parts.is_empty() {
        let Some(stand_in) = omissions.stand_in(before) else {
            return Node::skipped();
        };
        parts = text_parts(stand_in.to_owned());
    }
    let model = message["model"].as_str();
    Node::Message {
        role,
        parts,
        model: model.filter(|_| role == Role::Assistant).map(str::to_owned),
    }
}

fn answer_of(content: &str, omissions: &mut Omissions) -> Vec<Part> {
    const END: &str = "</details>";
    let (mut answer, mut reasoning) = (String::new(), String::new());
    let mut tools = Vec::new();
    let mut rest = content;
    while let Some(begin) = rest.find("<details type=\"") {
        let (before, block) = rest.split_at(begin);
        let Some((block, after)) = block.split_once(END) else {
            break;
        };
        answer.push_str(before);
        if block.starts_with("<details type=\"reasoning\"") {
            let inside = block.split_once("</summary>");
            let inside = inside.map_or("", |(_, inside)| inside);
            let inside = inside.trim();
            // Newer versions escape it all, with the marks of a quotation.
            let inside = match inside.starts_with("&gt;") {
                true => unescape(inside),
                false => inside.to_owned(),
            };
            for line in inside.lines() {
                let line = line.strip_prefix('>').unwrap_or(line);
                reasoning.push_str(line.strip_prefix(' ').unwrap_or(line));
                reasoning.push('\n');
            }
        } else if block.starts_with("<details type=\"tool_calls\"")
            && tools.len() < MOST_CALLS
            && let Some(name) = attribute(block, "name")
        {
            let id = attribute(block, "id").unwrap_or_default();
            tools.push(Part::ToolCall {
                id: id.clone(),
                name,
                arguments: attribute(block, "arguments").unwrap_or_default(),
            });
            let result = attribute(block, "result");
            tools.extend(result.map(|text| Part::ToolResult {
                id,
                text,
                failed: false,
            }));
        } else {
            omissions.add(OmittedPart::Tools, 1);
        }
        rest = after;
    }
    answer.push_str(rest);
    answer_with_tools(&answer, &reasoning, tools)
}

/// An attribute of a block's tag: a text that may be JSON once more, with what HTML escapes.
fn attribute(block: &str, name: &str) -> Option<String> {
    let tag = block.split_once('>').map_or(block, |(tag, _)| tag);
    let (_, rest) = tag.split_once(&format!(" {name}=\""))?;
    let (value, _) = rest.split_once('"')?;
    let value = unescape(value);
    // A text alone: what else it may be takes a hundred times its length once it is parsed.
    Some(serde_json::from_str(&value).unwrap_or(value))
}

fn unescape(text: &str) -> String {
    let mut text = text.to_owned();
    for (escaped, letter) in [
        ("&quot;", "\""),
        ("&#x27;", "'"),
        ("&#39;", "'"),
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&amp;", "&"),
    ] {
        text = text.replace(escaped, letter);
    }
    text
}

//! A conversation of ChatGPT's `conversations.json`: `mapping` has the nodes of a tree by their ids, each with its `message` and
//! `parent`, and `current_node` is the last one of the shown branch.

use super::{
    ImportedChat, Omissions, OmittedPart, millis, role, source, summary, text,
    tree::{Node, Tree},
};
use crate::{Chat, Part, Role, text_parts};
use serde_json::Value;

pub(super) fn read(value: &Value, omissions: &mut Omissions) -> ImportedChat {
    let mapping = value["mapping"].as_object();
    let nodes = mapping.into_iter().flatten().map(|(id, entry)| {
        let node = node(&entry["message"], omissions);
        (id.as_str(), entry["parent"].as_str(), node)
    });
    let nodes = nodes.collect();
    let mut tree = Tree::default();
    let leaf = tree.grow(None, nodes, value["current_node"].as_str());
    let id = value["conversation_id"].as_str().or(value["id"].as_str());
    ImportedChat {
        source: source("chatgpt", id),
        chat: Chat {
            summary: summary(text(value, "title"), value["is_starred"] == true),
            leaf,
            messages: tree.messages,
        },
        created_ms: millis(&value["create_time"]),
        updated_ms: millis(&value["update_time"]),
    }
}

fn node(message: &Value, omissions: &mut Omissions) -> Node {
    let content = &message["content"];
    let before = omissions.attached();
    let author = &message["author"];
    if author["role"] == "tool" {
        let result = Part::ToolResult {
            id: String::new(),
            text: content_text(content, omissions),
            failed: false,
        };
        let parts = vec![result];
        return Node::Skipped { parts };
    }
    let Some(role) = role(author) else {
        return Node::skipped();
    };
    match text(content, "content_type") {
        "thoughts" => return thoughts(content),
        // The length of the reasoning, and the user's custom instructions.
        "reasoning_recap" | "user_editable_context" | "model_editable_context" => {
            return Node::skipped();
        }
        _ => {}
    }
    let recipient = message["recipient"].as_str();
    if let Some(tool) = recipient.filter(|recipient| *recipient != "all") {
        let call = Part::ToolCall {
            id: String::new(),
            name: tool.to_owned(),
            arguments: content_text(content, omissions),
        };
        return Node::Skipped { parts: vec![call] };
    }
    if message["metadata"]["is_visually_hidden_from_conversation"] == true {
        return Node::skipped();
    }
    let mut content = content_text(content, omissions);
    let attachments = message["metadata"]["attachments"].as_array();
    // Images are parts as well.
    let files = attachments.into_iter().flatten().filter(|attachment| {
        let kind = text(attachment, "mime_type");
        !kind.starts_with("image/")
    });
    omissions.add(OmittedPart::Files, files.count() as u64);
    if content.trim().is_empty() {
        let Some(stand_in) = omissions.stand_in(before) else {
            return Node::skipped();
        };
        stand_in.clone_into(&mut content);
    }
    let model = message["metadata"]["model_slug"].as_str();
    Node::Message {
        role,
        parts: text_parts(content),
        model: model.filter(|_| role == Role::Assistant).map(str::to_owned),
    }
}

fn thoughts(content: &Value) -> Node {
    let thoughts = content["thoughts"].as_array();
    let thoughts = thoughts.into_iter().flatten();
    let texts: Vec<_> = thoughts.map(|thought| text(thought, "content")).collect();
    let mut reasoning = texts.join("\n\n").trim().to_owned();
    if reasoning.is_empty() {
        return Node::skipped();
    }
    reasoning.push('\n');
    Node::Skipped {
        parts: vec![Part::Reasoning { text: reasoning }],
    }
}

fn content_text(content: &Value, omissions: &mut Omissions) -> String {
    let Some(parts) = content["parts"].as_array() else {
        // What a search returns is called `result`.
        return [text(content, "text"), text(content, "result")].concat();
    };
    let mut texts = Vec::new();
    for part in parts {
        if let Some(text) = part.as_str() {
            texts.push(text);
            continue;
        }
        match text(part, "content_type") {
            "audio_transcription" => texts.push(text(part, "text")),
            "image_asset_pointer" => omissions.add(OmittedPart::Images, 1),
            _ => omissions.add(OmittedPart::Files, 1),
        }
    }
    texts.join("\n")
}

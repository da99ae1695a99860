//! A chat of LM Studio, a `*.conversation.json`: `messages` has the entries of the shown branch, each with its `versions` and the
//! number of the one that is shown. An answer is made of steps.

use super::{
    ImportedChat, Omissions, OmittedPart, answer_with_tools, millis, role, source, summary, text,
    tree::Tree,
};
use crate::{Chat, Part, Role, text_parts};
use serde_json::Value;
use std::borrow::Cow;

pub(super) fn read(value: &Value, omissions: &mut Omissions) -> ImportedChat {
    let mut tree = Tree::default();
    let instructions = instructions(value).trim();
    let mut last = (!instructions.is_empty()).then(|| {
        let parts = text_parts(instructions.to_owned());
        tree.add(None, Role::System, parts, None)
    });
    let root = last;
    for entry in value["messages"].as_array().into_iter().flatten() {
        let selected = entry["currentlySelected"].as_u64().unwrap_or(0);
        let versions = entry["versions"].as_array().into_iter().flatten();
        let parent = last;
        for (number, version) in versions.enumerate() {
            if tree.is_full() {
                break;
            }
            let Some((role, parts, model)) = message(version, omissions) else {
                continue;
            };
            let id = tree.add(parent, role, parts, model);
            if number as u64 == selected || last == parent {
                last = Some(id);
            }
        }
    }
    let has_more = last != root;
    let created = &value["createdAt"];
    // The file has no id; its time of creation is also its name.
    let id = created.as_u64().map(|created| created.to_string());
    let last_message = millis(&value["assistantLastMessagedAt"]);
    let updated = last_message.max(millis(&value["userLastMessagedAt"]));
    ImportedChat {
        source: source("lm-studio", id.as_deref()),
        chat: Chat {
            summary: summary(text(value, "name"), value["pinned"] == true),
            leaf: last,
            messages: if has_more { tree.messages } else { Vec::new() },
        },
        created_ms: millis(created),
        updated_ms: updated.or(millis(created)),
    }
}

fn instructions(value: &Value) -> &str {
    let fields = value["perChatPredictionConfig"]["fields"].as_array();
    let mut fields = fields.into_iter().flatten();
    let field = fields.find(|field| text(field, "key") == "llm.prediction.systemPrompt");
    let own = field.map_or("", |field| text(field, "value"));
    if own.is_empty() {
        text(value, "systemPrompt")
    } else {
        own
    }
}

fn message(
    version: &Value,
    omissions: &mut Omissions,
) -> Option<(Role, Vec<Part>, Option<String>)> {
    let before = omissions.attached();
    let role = role(version)?;
    let (mut answer, mut reasoning, mut tools) = (Vec::new(), Vec::new(), Vec::new());
    if let Some(steps) = version["steps"].as_array() {
        for step in steps {
            // The others say such things as how far a call has come.
            if text(step, "type") == "contentBlock" {
                let is_thought = text(&step["style"], "type") == "thinking";
                let texts = if is_thought {
                    &mut reasoning
                } else {
                    &mut answer
                };
                texts.extend(texts_of(&step["content"], omissions));
                tools.extend(tools_of(&step["content"]));
            }
        }
    } else {
        answer = texts_of(&version["content"], omissions);
        tools = tools_of(&version["content"]);
    }
    let mut parts = answer_with_tools(&answer.join("\n"), &reasoning.join("\n"), tools);
    if parts.is_empty() {
        parts = text_parts(omissions.stand_in(before)?.to_owned());
    }
    let model = text(&version["senderInfo"], "senderName");
    let model = (role == Role::Assistant && !model.is_empty()).then(|| model.to_owned());
    Some((role, parts, model))
}

fn texts_of<'a>(content: &'a Value, omissions: &mut Omissions) -> Vec<&'a str> {
    if let Some(text) = content.as_str() {
        return vec![text];
    }
    let mut texts = Vec::new();
    for part in content.as_array().into_iter().flatten() {
        match text(part, "type") {
            "text" => texts.push(text(part, "text")),
            "file" if text(part, "fileType") == "image" => omissions.add(OmittedPart::Images, 1),
            "file" => omissions.add(OmittedPart::Files, 1),
            _ => {}
        }
    }
    texts
}

/// The calls of tools, and their results.
fn tools_of(content: &Value) -> Vec<Part> {
    let parts = content.as_array().into_iter().flatten();
    let tool = |part: &Value| {
        let first_of = |keys: &[&str]| {
            let mut values = keys.iter().map(|key| &part[*key]);
            let value = values.find(|value| !value.is_null()).map(plain);
            value.unwrap_or_default().into_owned()
        };
        let id = first_of(&["toolCallRequestId", "toolCallId", "callId"]);
        match text(part, "type") {
            "toolCallRequest" => Some(Part::ToolCall {
                id,
                name: text(part, "name").to_owned(),
                arguments: first_of(&["parameters", "arguments"]),
            }),
            "toolCallResult" => Some(Part::ToolResult {
                id,
                text: plain(&part["content"]).into_owned(),
                failed: false,
            }),
            _ => None,
        }
    };
    parts.filter_map(tool).collect()
}

/// A text as it is, and anything else as JSON.
fn plain(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        other => Cow::Owned(other.to_string()),
    }
}

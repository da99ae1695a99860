//! Chats of files that Tierbar and other programs have exported.
//!
//! A file is one chat or an array of chats, as JSON. Each chat is read by itself, within a bound, so that a large file needs little
//! memory and a chat of an unknown form does not lose the others. Fields are looked for one by one: the forms of other programs are published nowhere and
//! change.

mod chatgpt;
mod lm_studio;
mod open_webui;
mod tree;
mod value;

use super::{Chat, ChatSummary, Part, Role, answer_parts, settings::AnswerSettings, text_parts};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use tierbar_core::TierId;
use value::ParseFailure;

/// The memory that reading one chat may take besides its file: its texts, as values, as messages and on the way between them.
pub const MEMORY: usize = 64 << 20;
const MAX_TITLE_CHARS: usize = 500;
const MAX_MODEL_CHARS: usize = 500;

/// A chat of a file. The ids of its messages count from 1, and a parent's is smaller than its children's.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedChat {
    /// Names the chat in the program that it comes from, such as `chatgpt:6f0…`; empty if it has no name there.
    pub source: String,
    pub chat: Chat,
    /// When it was created and last changed, in milliseconds since 1970; otherwise the texts of `chat` say so.
    pub created_ms: Option<i64>,
    pub updated_ms: Option<i64>,
}

/// What an import has brought.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ChatImport {
    pub chats: u64,
    /// Also those that chats of an earlier import have more in this file.
    pub messages: u64,
    /// Chats of the file that an earlier import had brought.
    pub known: u64,
    /// What was left out, and why.
    pub left_out: Vec<Omission>,
}

/// What an import leaves out of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Omission {
    pub what: OmittedPart,
    pub count: u64,
    /// In words for people.
    pub why: String,
}

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[schema(as = Omitted)]
pub enum OmittedPart {
    /// Chats of an unknown form.
    UnknownChats,
    /// Chats that are larger than one can be.
    LargeChats,
    /// Chats without messages.
    EmptyChats,
    Images,
    Files,
    /// Calls of tools, and what they returned.
    Tools,
}

impl OmittedPart {
    fn why(self) -> &'static str {
        match self {
            Self::UnknownChats => "they have no form that Tierbar knows",
            Self::LargeChats => "a chat can take 16 MiB",
            Self::EmptyChats => "they have no messages",
            Self::Images => "the file names images without containing them",
            Self::Files => "the file names attachments without containing them",
            Self::Tools => "these calls of tools have no form that Tierbar knows",
        }
    }
}

/// Counts what is left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Omissions(BTreeMap<OmittedPart, u64>);

impl Omissions {
    pub fn add(&mut self, what: OmittedPart, count: u64) {
        if count > 0 {
            *self.0.entry(what).or_default() += count;
        }
    }

    fn attached(&self) -> [u64; 2] {
        let count = |what| self.0.get(&what).copied().unwrap_or_default();
        [OmittedPart::Images, OmittedPart::Files].map(count)
    }

    /// What stands in a message without words for what was left out of it. `before`: [`Self::attached`] before it.
    fn stand_in(&self, before: [u64; 2]) -> Option<&'static str> {
        let [images, files] = self.attached();
        match (images > before[0], files > before[1]) {
            (true, _) => Some("[image]"),
            (false, true) => Some("[file]"),
            (false, false) => None,
        }
    }

    pub fn extend(&mut self, more: Self) {
        for (what, count) in more.0 {
            self.add(what, count);
        }
    }

    pub fn list(&self) -> Vec<Omission> {
        let counts = self.0.iter();
        let omission = |(what, count): (&OmittedPart, &u64)| Omission {
            what: *what,
            count: *count,
            why: what.why().to_owned(),
        };
        counts.map(omission).collect()
    }
}

/// Returns the chats of a file that is valid JSON: the elements of an array, or the one that an object is. `None` if there are more than
/// `most`.
pub fn elements(json: &[u8], most: usize) -> Option<Vec<&[u8]>> {
    let json = json.trim_ascii();
    let inside = json.strip_prefix(b"[");
    let Some(inside) = inside.and_then(|rest| rest.strip_suffix(b"]")) else {
        return Some(vec![json]);
    };
    let mut elements = Vec::new();
    let (mut from, mut depth, mut in_text, mut escaped) = (0, 0_usize, false, false);
    for (at, byte) in inside.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            _ if in_text => {}
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                if elements.len() >= most {
                    return None;
                }
                elements.push(&inside[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    let last = &inside[from..];
    if !last.trim_ascii().is_empty() {
        elements.push(last);
    }
    (elements.len() <= most).then_some(elements)
}

/// Reads one chat of a file; `None` if it is left out, which `omissions` counts. `files`: the hashes of those that the chat contains.
pub fn read(
    element: &[u8],
    files: &BTreeSet<String>,
    omissions: &mut Omissions,
) -> Option<ImportedChat> {
    let chat = match value::parse(element) {
        Ok(value) => of_value(value, files, omissions),
        Err(ParseFailure::Invalid) => None,
        Err(ParseFailure::TooLarge) => {
            omissions.add(OmittedPart::LargeChats, 1);
            return None;
        }
    };
    let Some(mut imported) = chat else {
        omissions.add(OmittedPart::UnknownChats, 1);
        return None;
    };
    if imported.chat.messages.is_empty() {
        omissions.add(OmittedPart::EmptyChats, 1);
        return None;
    }
    let title = imported.chat.summary.title.trim();
    imported.chat.summary.title = title.chars().take(MAX_TITLE_CHARS).collect();
    Some(imported)
}

fn of_value(
    value: Value,
    files: &BTreeSet<String>,
    omissions: &mut Omissions,
) -> Option<ImportedChat> {
    let inner = &value["chat"];
    if value["mapping"].is_object() {
        Some(chatgpt::read(&value, omissions))
    } else if inner["history"]["messages"].is_object() || inner["messages"].is_array() {
        Some(open_webui::read(&value, omissions))
    } else if value["messages"].is_array() && value.get("leaf").is_some() {
        read_export(value, files, omissions)
    } else if value["messages"].is_array() && value.get("name").is_some() {
        Some(lm_studio::read(&value, omissions))
    } else {
        None
    }
}

/// A chat as its export has it, or `GET /tierbar/v1/chats/{id}`. What a chat cannot be set to becomes the default.
fn read_export(
    value: Value,
    files: &BTreeSet<String>,
    omissions: &mut Omissions,
) -> Option<ImportedChat> {
    let mut chat: Chat = serde_json::from_value(value).ok()?;
    let summary = &mut chat.summary;
    if summary.settings.check().is_err() {
        summary.settings = AnswerSettings::default();
    }
    let model = summary.model.trim();
    summary.model = match model.chars().count() {
        1..=MAX_MODEL_CHARS => model.to_owned(),
        _ => TierId::AUTO.to_owned(),
    };
    chat.messages.sort_by_key(|message| message.id);
    for message in &mut chat.messages {
        let last = message.parts.len().saturating_sub(1);
        for (at, part) in message.parts.iter_mut().enumerate() {
            let Some(file) = part.file().filter(|file| !files.contains(&file.sha256)) else {
                continue;
            };
            let omitted = match *part {
                Part::Image { .. } => OmittedPart::Images,
                _ => OmittedPart::Files,
            };
            omissions.add(omitted, 1);
            // The file has its name alone. Texts are joined as they are.
            let end = if at < last { "\n\n" } else { "" };
            let text = format!("[{}]{end}", file.name);
            *part = Part::Text { text };
        }
    }
    Some(ImportedChat {
        source: source("tierbar", Some(&chat.summary.id)),
        chat,
        created_ms: None,
        updated_ms: None,
    })
}

fn source(program: &str, id: Option<&str>) -> String {
    id.map_or_else(String::new, |id| format!("{program}:{id}"))
}

/// A chat of another program, which is answered by `auto` here.
fn summary(title: &str, pinned: bool) -> ChatSummary {
    ChatSummary {
        title: title.to_owned(),
        model: TierId::AUTO.to_owned(),
        pinned,
        ..ChatSummary::default()
    }
}

/// A time in milliseconds. Programs count in seconds, milliseconds, microseconds or nanoseconds; of which, the size tells: each is a
/// time between 1973 and 5138 in one of them only.
fn millis(time: &Value) -> Option<i64> {
    let mut time = time.as_f64().filter(|time| *time > 0.0)?;
    if time < 1e11 {
        time *= 1000.0;
    }
    while time >= 1e14 {
        time /= 1000.0;
    }
    Some(time as i64)
}

/// The role of a message; `None` for what is no part of a conversation.
fn role(message: &Value) -> Option<Role> {
    Role::deserialize(&message["role"]).ok()
}

/// The parts of an answer, with the calls of tools and their results behind its reasoning.
fn answer_with_tools(answer: &str, reasoning: &str, tools: Vec<Part>) -> Vec<Part> {
    let mut parts = answer_parts(String::new(), reasoning.trim().to_owned());
    parts.extend(tools);
    parts.extend(text_parts(answer.trim().to_owned()));
    parts
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests;

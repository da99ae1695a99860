//! A chat as a file for people.

mod headings;

use super::{Chat, ChatMessage, Part, Role, branch, thinking::split};
use headings::{one_line, without_headings};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fmt::Write};

/// A chat as a file for programs, which can be imported.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ExportedChat {
    #[serde(flatten)]
    pub chat: Chat,
    /// The files of its messages in base64, by their hash in hexadecimal.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
}

const UNTITLED: &str = "New Chat";
/// Enough for a title, and short of what file systems allow.
const MAX_NAME_CHARS: usize = 80;

/// Returns the shown branch of a chat as Markdown: its title and date, and each message below its role, with the tier and model of
/// answers. `reasoning`: also what models thought before they answered.
pub fn markdown(chat: &Chat, reasoning: bool) -> String {
    render(chat, reasoning, |_| None)
}

/// Returns the same with why turns failed, which is not of the chat: it is shown, and not exported.
pub fn markdown_with_failures(chat: &Chat, reasoning: bool) -> String {
    render(chat, reasoning, |message| chat.failure_of(message))
}

fn render(
    chat: &Chat,
    reasoning: bool,
    failure: impl Fn(&ChatMessage) -> Option<String>,
) -> String {
    let mut text = format!("# {}\n", one_line(title(chat)));
    let date = chat.summary.created_at.get(..10).unwrap_or_default();
    if !date.is_empty() {
        let _infallible = write!(text, "\n{date}\n");
    }
    let messages = chat.leaf.map(|leaf| branch(&chat.messages, leaf));
    for message in messages.unwrap_or_default() {
        let _infallible = write!(text, "\n## {}\n", one_line(&heading(message)));
        for part in &message.parts {
            let is_answer = message.role == Role::Assistant;
            if let Some(part) = render_part(part, is_answer, reasoning) {
                let _infallible = write!(text, "\n{}", without_headings(part.trim_end()));
            }
        }
        if let Some(failure) = failure(message) {
            let _infallible = write!(text, "\n*{}*\n", one_line(&failure));
        }
    }
    text
}

/// Returns the name of a chat's file, without its extension: the title without what file systems refuse.
pub fn file_name(chat: &Chat) -> String {
    let is_refused = |letter: char| letter.is_control() || r#"/\:*?"<>|"#.contains(letter);
    let name = title(chat).replace(is_refused, " ");
    let words: Vec<_> = name.split_whitespace().collect();
    let name: String = words.join(" ").chars().take(MAX_NAME_CHARS).collect();
    // A file whose name begins with a dot is hidden, and one that ends with it is refused by Windows.
    let name = name.trim_matches(['.', ' ']);
    if name.is_empty() {
        UNTITLED.to_owned()
    } else {
        name.to_owned()
    }
}

fn title(chat: &Chat) -> &str {
    match chat.summary.title.trim() {
        "" => UNTITLED,
        title => title,
    }
}

fn heading(message: &ChatMessage) -> String {
    let name = match message.role {
        Role::System => return "System".to_owned(),
        Role::User => return "You".to_owned(),
        Role::Assistant => "Answer",
    };
    let from = [&message.answer.tier, &message.answer.model];
    let mut from: Vec<_> = from.into_iter().flatten().map(String::as_str).collect();
    // A tier of another program has no name for its model.
    from.dedup();
    if from.is_empty() {
        name.to_owned()
    } else {
        format!("{name} ({})", from.join(", "))
    }
}

/// A part as Markdown; `None` for one that is left out.
fn render_part(part: &Part, is_answer: bool, reasoning: bool) -> Option<String> {
    match part {
        Part::Text { text } if is_answer => render_text(text, reasoning),
        Part::Text { text } => Some(text.clone()),
        Part::Reasoning { text } => reasoning.then(|| quote(text)),
        Part::Image { file } | Part::Audio { file } | Part::File { file } => {
            Some(format!("*[{}]*", file.name))
        }
        Part::ToolCall {
            name, arguments, ..
        } => Some(format!("*[{name}]*\n\n```json\n{arguments}\n```")),
        Part::ToolResult { text, .. } => Some(quote(text)),
        Part::Sources { sources } => {
            let lines = sources
                .iter()
                .map(|source| format!("- [{}]({})", source.title, source.url));
            Some(lines.collect::<Vec<_>>().join("\n"))
        }
    }
}

/// The text of an answer, in which some servers leave the reasoning.
fn render_text(text: &str, reasoning: bool) -> Option<String> {
    let (thought, answer) = split(text);
    let thought = (reasoning && !thought.is_empty()).then(|| quote(thought));
    let answer = (!answer.is_empty()).then(|| answer.to_owned());
    let parts: Vec<_> = thought.into_iter().chain(answer).collect();
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

fn quote(text: &str) -> String {
    let lines = text.trim_end().lines();
    let lines = lines.map(|line| format!("> {line}").trim_end().to_owned());
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        AnswerFacts, ChatSummary, TurnFailure, context::WhenFull, settings::AnswerSettings,
        text_parts,
    };

    fn chat(title: &str, messages: Vec<ChatMessage>) -> Chat {
        Chat {
            summary: ChatSummary {
                id: "1f".into(),
                title: title.into(),
                model: "auto".into(),
                created_at: "2026-11-26T08:15:00.000000Z".into(),
                updated_at: "2026-11-26T08:16:00.000000Z".into(),
                when_full: WhenFull::Refuse,
                settings: AnswerSettings::default(),
                pinned: false,
                turn: None,
                found: None,
            },
            leaf: messages.last().map(|message| message.id),
            messages,
        }
    }

    fn message(id: u64, role: Role, parts: Vec<Part>) -> ChatMessage {
        ChatMessage {
            id,
            parent: id.checked_sub(1).filter(|parent| *parent > 0),
            role,
            parts,
            answer: AnswerFacts::default(),
        }
    }

    #[test]
    fn markdown_has_the_title_date_roles_and_models() {
        let mut answer = message(
            2,
            Role::Assistant,
            vec![
                Part::Reasoning {
                    text: "Easy.\nVery.".into(),
                },
                Part::Text {
                    text: "**Paris**\n".into(),
                },
            ],
        );
        answer.answer.tier = Some("fast".into());
        answer.answer.model = Some("gemma".into());
        let question = message(1, Role::User, text_parts("The capital of France?".into()));
        let chat = chat("France", vec![question, answer]);
        let plain = "# France\n\n2026-11-26\n\n## You\n\nThe capital of France?\n\n## Answer (fast, gemma)\n\n";
        assert_eq!(markdown(&chat, false), format!("{plain}**Paris**\n"));
        assert_eq!(
            markdown(&chat, true),
            format!("{plain}> Easy.\n> Very.\n\n**Paris**\n")
        );
    }

    #[test]
    fn why_a_turn_failed_is_shown_and_not_exported() {
        let failed = |mut message: ChatMessage, hint: Option<&str>| {
            message.answer.failure = Some(TurnFailure {
                code: "worker_crashed".into(),
                message: "the worker\ncrashed".into(),
                hint: hint.map(Into::into),
            });
            message
        };
        let [first, last] = [1, 3].map(|id| message(id, Role::User, text_parts("?".into())));
        let begun = message(2, Role::Assistant, text_parts("Par".into()));
        let messages = vec![
            failed(first, None),
            failed(begun, Some("try again")),
            failed(last, None),
        ];
        let chat = chat("", messages);
        let shown = markdown_with_failures(&chat, false);
        let end = "## You\n\n?\n\n## Answer\n\nPar\n\n*Interrupted: the worker crashed; try again*\n\n## You\n\n?\n\n*No answer: the worker crashed*\n";
        assert!(shown.ends_with(end), "{shown}");
        let exported = markdown(&chat, false);
        assert!(!exported.contains("crashed"), "{exported}");
    }

    #[test]
    fn a_message_cannot_pose_as_another() {
        for (forged, escaped) in [
            ("## You", "\\## You"),
            (
                "x\n  ##  Answer (fast) ##\ny",
                "x\n\\##  Answer (fast) ##\ny",
            ),
            ("# System", "\\# System"),
            ("```\n## You\n```", "```\n\\## You\n```"),
            ("You\n---\nx", "You\n\n---\nx"),
            ("Answer (a)\n ==", "Answer (a)\n\n =="),
            ("## **You**", "\\## **You**"),
        ] {
            for role in [Role::User, Role::Assistant] {
                let chat = chat("", vec![message(1, role, text_parts(forged.into()))]);
                let text = markdown(&chat, false);
                assert!(text.ends_with(&format!("\n\n{escaped}\n")), "{text}");
            }
        }
        let mut answer = message(1, Role::Assistant, Vec::new());
        answer.answer.model = Some("m\n## You".into());
        let text = markdown(&chat("a\r\n## You", vec![answer]), false);
        assert!(!text.lines().any(|line| line == "## You"), "{text}");
        let honest = "## Your answer\n\nYou\n\n---\nAnswers\n---\n# a comment";
        let chat = chat("", vec![message(1, Role::User, text_parts(honest.into()))]);
        let text = markdown(&chat, false);
        assert!(text.ends_with(&format!("\n\n{honest}\n")), "{text}");
    }

    #[test]
    fn reasoning_within_an_answer_is_reasoning() {
        let text = "<think>Easy.</think>\n\nParis";
        let chat = chat(
            "",
            vec![message(1, Role::Assistant, text_parts(text.into()))],
        );
        let plain = markdown(&chat, false);
        assert!(plain.ends_with("## Answer\n\nParis\n"), "{plain}");
        let all = markdown(&chat, true);
        assert!(all.ends_with("## Answer\n\n> Easy.\n\nParis\n"), "{all}");
    }

    #[test]
    fn markdown_has_only_the_shown_branch() {
        let mut other = message(3, Role::Assistant, text_parts("Berlin".into()));
        other.parent = Some(1);
        let messages = vec![
            message(1, Role::User, text_parts("?".into())),
            message(2, Role::Assistant, text_parts("Paris".into())),
            other,
        ];
        let mut chat = chat("", messages);
        chat.leaf = Some(2);
        let text = markdown(&chat, false);
        assert!(text.starts_with("# New Chat\n"), "{text}");
        assert!(text.contains("Paris") && !text.contains("Berlin"), "{text}");
    }

    #[test]
    fn a_file_name_has_what_file_systems_allow() {
        for (title, name) in [
            ("a/b: c?\n\"d\"", "a b c d"),
            ("..", "New Chat"),
            ("", "New Chat"),
            ("Zürich 2026", "Zürich 2026"),
        ] {
            assert_eq!(file_name(&chat(title, Vec::new())), name);
        }
        assert_eq!(
            file_name(&chat(&"ü".repeat(300), Vec::new()))
                .chars()
                .count(),
            80
        );
    }
}

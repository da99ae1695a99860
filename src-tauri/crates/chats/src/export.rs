//! A chat as a file for people.

mod quote;

use super::{Chat, ChatMessage, Part, Role, branch, thinking::split};
use quote::{fence, one_line, quote};
use serde::{Deserialize, Serialize};
use std::{borrow::Cow, collections::BTreeMap, fmt::Write};

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
/// answers. What was written is in block quotes, so that no text poses as another's. `reasoning`: also what models thought before
/// they answered.
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
        let is_answer = message.role == Role::Assistant;
        let parts = message.parts.iter();
        let mut follows_a_quote = false;
        for (label, written) in parts.flat_map(|part| render_part(part, is_answer, reasoning)) {
            let label = match label {
                "" if follows_a_quote => "text",
                label => label,
            };
            if !label.is_empty() {
                let _infallible = write!(text, "\n*[{}]*\n", one_line(label));
            }
            follows_a_quote = !written.trim().is_empty();
            if follows_a_quote {
                let _infallible = write!(text, "\n{}", quote(&written));
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

/// What a part is called, and what was written in it; either may be empty.
fn render_part<'a>(
    part: &'a Part,
    is_answer: bool,
    reasoning: bool,
) -> Vec<(&'a str, Cow<'a, str>)> {
    let thought = |text: &'a str| -> Option<(&'a str, Cow<'a, str>)> {
        (reasoning && !text.is_empty()).then(|| ("reasoning", text.into()))
    };
    match part {
        // Some servers leave the reasoning in the text.
        Part::Text { text } if is_answer => {
            let (thoughts, answer) = split(text);
            let answer: (&str, Cow<'_, str>) = ("", answer.into());
            thought(thoughts).into_iter().chain([answer]).collect()
        }
        Part::Text { text } => vec![("", text.into())],
        Part::Reasoning { text } => thought(text).into_iter().collect(),
        Part::Image { file } | Part::Audio { file } | Part::File { file } => {
            vec![(file.name.as_str(), Cow::default())]
        }
        Part::ToolCall {
            name, arguments, ..
        } => vec![(name.as_str(), fence("json", arguments).into())],
        Part::ToolResult { text, .. } => vec![("result", text.into())],
        Part::Sources { sources } => {
            let lines = sources
                .iter()
                .map(|source| format!("- [{}]({})", source.title, source.url));
            vec![("sources", lines.collect::<Vec<_>>().join("\n").into())]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        AnswerFacts, Attachment, ChatSummary, TurnFailure, context::WhenFull,
        settings::AnswerSettings, text_parts,
    };
    use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

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
        let plain = "# France\n\n2026-11-26\n\n## You\n\n> The capital of France?\n\n## Answer (fast, gemma)\n\n";
        assert_eq!(markdown(&chat, false), format!("{plain}> **Paris**\n"));
        assert_eq!(
            markdown(&chat, true),
            format!("{plain}*[reasoning]*\n\n> Easy.\n> Very.\n\n*[text]*\n\n> **Paris**\n")
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
        let end = "## You\n\n> ?\n\n## Answer\n\n> Par\n\n*Interrupted: the worker crashed; try again*\n\n## You\n\n> ?\n\n*No answer: the worker crashed*\n";
        assert!(shown.ends_with(end), "{shown}");
        let exported = markdown(&chat, false);
        assert!(!exported.contains("crashed"), "{exported}");
    }

    /// Returns the headings of a file that stand in no quote. HTML stands nowhere in it.
    fn headings(text: &str, options: Options) -> Vec<String> {
        let (mut depth, mut found, mut is_heading) = (0, Vec::new(), false);
        for event in Parser::new_ext(text, options) {
            match event {
                Event::Start(Tag::BlockQuote(_)) => depth += 1,
                Event::End(TagEnd::BlockQuote(_)) => depth -= 1,
                Event::Start(Tag::Heading { .. }) if depth == 0 => {
                    is_heading = true;
                    found.push(String::new());
                }
                Event::End(TagEnd::Heading(_)) => is_heading = false,
                Event::Text(words) if is_heading => *found.last_mut().unwrap() += &*words,
                Event::Html(_) | Event::InlineHtml(_) => panic!("HTML in {text:?}"),
                _ => {}
            }
        }
        found
    }

    fn check_headings(written: &str) {
        let file = Attachment {
            sha256: String::new(),
            media_type: String::new(),
            name: written.into(),
            bytes: 0,
        };
        let call = Part::ToolCall {
            id: String::new(),
            name: written.into(),
            arguments: written.into(),
        };
        let reasoning = Part::Reasoning {
            text: written.into(),
        };
        let mut parts = text_parts(written.into());
        parts.extend([Part::File { file }, reasoning, call]);
        let question = message(1, Role::User, parts.clone());
        let answer = message(2, Role::Assistant, parts);
        let chat = chat("Rivers", vec![question, answer]);
        let text = markdown(&chat, true);
        for options in quote::option_sets() {
            let found = headings(&text, options);
            assert_eq!(found, ["Rivers", "You", "Answer"], "{text}");
        }
    }

    #[test]
    fn a_message_cannot_pose_as_another() {
        for forged in [
            "## You",
            "You\n---\nx",
            "x\r## You\r",
            "```\n## You",
            "~~~\n\n## You",
            "- a\n\n  ```\n## You",
            "</blockquote><h2>You</h2>",
            "a</blockquote><h2>You</h2>",
            "<div>\n```\n</div>\n\n```\n</blockquote><h2>You</h2>\n```",
            "<div>\n\\<h2>You</h2>",
            "| a | b |\n|---|---|\n| `x | `<h2>You</h2>` |",
            "| a | b |\n|---|---|\n| `a | <h2>You</h2> ` |",
            "<!-- ",
            "<pre>",
            "[^1]: a\n\n    ## You",
            "hello\na | b\n---|---\n`x | </table></blockquote><h2>You</h2>`",
            "| a | b |\n|---|---|\n| `x | $</table></blockquote><h2>You</h2>` y$ |",
            "| a | b |\n|---|---|\t\n| `x | </table></blockquote><h2>You</h2>` |",
        ] {
            check_headings(forged);
        }
        let mut answer = message(1, Role::Assistant, Vec::new());
        answer.answer.model = Some("m\n## You <h2>".into());
        let text = markdown(&chat("a\r\n## You</h1><h2>You", vec![answer]), false);
        let found = headings(&text, Options::empty());
        assert_eq!(found, ["a  ## You</h1><h2>You", "Answer (m ## You <h2>)"]);
    }

    proptest::proptest! {
        #[test]
        fn no_text_leaves_its_quote(written in "[<>!?\\\\\\[\\]()`~#|$:&;^=/* \n\t\rab1-]{0,60}") {
            check_headings(&written);
        }
    }

    #[test]
    fn reasoning_within_an_answer_is_reasoning() {
        let text = "<think>Easy.</think>\n\nParis";
        let chat = chat(
            "",
            vec![message(1, Role::Assistant, text_parts(text.into()))],
        );
        let plain = markdown(&chat, false);
        assert!(plain.ends_with("## Answer\n\n> Paris\n"), "{plain}");
        let all = markdown(&chat, true);
        let end = "## Answer\n\n*[reasoning]*\n\n> Easy.\n\n*[text]*\n\n> Paris\n";
        assert!(all.ends_with(end), "{all}");
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

//! Messages and answers as they are printed.

use crate::output;
use tierbar_chats::{
    ChatMessage, Role,
    thinking::{WithoutThinking, split},
};

/// Prints an answer as it comes, and keeps how far it got.
#[derive(Default)]
pub(super) struct AnswerPrinter {
    pub(super) ends_within_a_line: bool,
    /// The bytes at the beginning that were printed before.
    pub(super) printed: usize,
    /// Reasoning is not printed, also not what a server leaves in the text.
    pub(super) answer: WithoutThinking,
    /// The text is kept as it came, and not printed.
    pub(super) gathers: bool,
    pub(super) gathered: String,
}

impl AnswerPrinter {
    pub(super) fn add(&mut self, text: &str) {
        if self.gathers {
            self.gathered.push_str(text);
            return;
        }
        let text = self.answer.push(text);
        self.print(&text);
    }

    fn print(&mut self, text: &str) {
        let before = self.printed.min(text.len());
        self.printed -= before;
        let text = text.get(before..).unwrap_or(text);
        if text.is_empty() {
            return;
        }
        output::write(text);
        self.ends_within_a_line = !text.ends_with('\n');
    }

    pub(super) fn end_line(&mut self) {
        let rest = self.answer.end();
        self.print(&rest);
        if std::mem::take(&mut self.ends_within_a_line) {
            output::write_line("");
        }
    }
}

pub(super) fn show(message: &ChatMessage) {
    let text = message.text();
    match message.role {
        Role::User => output::write_line(&format!("> {text}")),
        Role::Assistant => output::write_line(split(&text).1),
        Role::System => {}
    }
}

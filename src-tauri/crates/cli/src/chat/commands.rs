//! What is typed into `tierbar chat`: messages, and commands as the chat window has them.

use rustyline::{
    Context, Helper, completion::Completer, highlight::Highlighter, hint::Hinter,
    validate::Validator,
};

/// Each command, what follows it, and what it does.
pub(super) const COMMANDS: [(&str, &str, &str); 16] = [
    ("new", "", "Start a new chat"),
    ("model", "NAME", "Choose the tier or chain that answers"),
    (
        "instructions",
        "[TEXT]",
        "Set instructions for each answer (\"\" removes them), or show them",
    ),
    (
        "agent",
        "[FOLDER]",
        "Let the model act in a folder, and ask first; without FOLDER, turn this off",
    ),
    (
        "undo",
        "[force]",
        "Undo the last file changes of this chat; force: also of files that have changed since",
    ),
    (
        "file",
        "PATH",
        "Send a text, document, image or sound file with the next question",
    ),
    ("retry", "", "Answer the last message again"),
    ("continue", "", "Continue the last answer"),
    (
        "clear",
        "",
        "Start over in this chat; its messages are kept",
    ),
    ("good", "[WHY]", "Grade the last answer as good"),
    ("bad", "[WHY]", "Grade the last answer as bad"),
    ("ungrade", "", "Remove the grade of the last answer"),
    ("improve", "", "Show how answers were graded"),
    ("cost", "", "Show the costs of requests in the last 30 days"),
    ("help", "", "Show the commands"),
    ("quit", "", "Quit, as Ctrl-D does; the chat is kept"),
];

/// What a line asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Input {
    Message(String),
    /// One of [`COMMANDS`], and what follows it.
    Command(&'static str, String),
    /// One of [`COMMANDS`] with other words than it takes, and what that is.
    Surplus(&'static str, &'static str),
    /// The name of a command that does not exist.
    Unknown(String),
}

/// Reads a line. A path such as `/usr/bin` is a message; a second slash at the beginning makes anything one.
pub(super) fn parse(line: &str) -> Input {
    if let Some(rest) = line.strip_prefix("//") {
        return Input::Message(format!("/{rest}"));
    }
    let message = || Input::Message(line.to_owned());
    let Some(typed) = line.trim_end().strip_prefix('/') else {
        return message();
    };
    let (name, argument) = typed.split_once(char::is_whitespace).unwrap_or((typed, ""));
    if name.is_empty() || !name.chars().all(|letter| letter.is_ascii_alphabetic()) {
        return message();
    }
    let name = name.to_ascii_lowercase();
    // What other programs call it.
    let name = match name.as_str() {
        "exit" => "quit".to_owned(),
        _ => name,
    };
    let argument = argument.trim();
    match COMMANDS.iter().find(|(known, _, _)| *known == name) {
        Some((known, takes, _)) if !may_follow(argument, takes) => Input::Surplus(known, takes),
        Some((known, _, _)) => Input::Command(known, argument.to_owned()),
        None => Input::Unknown(name),
    }
}

/// Whether a command takes these words. In capitals is what stands for any words.
fn may_follow(words: &str, takes: &str) -> bool {
    words.is_empty()
        || takes.contains(char::is_uppercase)
        || takes.trim_matches(['[', ']']) == words
}

/// Whether a line ends the conversation.
pub(super) fn quits(line: &str) -> bool {
    matches!(parse(line), Input::Command("quit", _))
}

/// Completes the names of commands, and after `/model` those of tiers and chains.
pub(super) struct Completion {
    pub(super) models: Vec<String>,
}

impl Completion {
    /// Returns where what is completed begins, and the words that begin so.
    fn words(&self, line: &str) -> (usize, Vec<String>) {
        if let Some(begun) = line.strip_prefix("/model ") {
            let names = self.models.iter().filter(|name| name.starts_with(begun));
            return (line.len() - begun.len(), names.cloned().collect());
        }
        let Some(begun) = line.strip_prefix('/') else {
            return (0, Vec::new());
        };
        let names = COMMANDS
            .iter()
            .filter(|(name, _, _)| name.starts_with(begun));
        let words = names.map(|(name, argument, _)| {
            let space = if argument.is_empty() { "" } else { " " };
            format!("/{name}{space}")
        });
        (0, words.collect())
    }
}

impl Completer for Completion {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        pos: usize,
        _ctx: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(self.words(line.get(..pos).unwrap_or(line)))
    }
}

impl Hinter for Completion {
    type Hint = String;
}

impl Highlighter for Completion {}

impl Validator for Completion {}

impl Helper for Completion {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_message_or_a_command() {
        let message = |text: &str| Input::Message(text.to_owned());
        let command = |name, argument: &str| Input::Command(name, argument.to_owned());
        for (line, input) in [
            ("/retry ", command("retry", "")),
            ("/Model  fast", command("model", "fast")),
            ("/quit", command("quit", "")),
            ("/exit ", command("quit", "")),
            ("/agent ~/toy", command("agent", "~/toy")),
            ("/undo force", command("undo", "force")),
            ("/undo xyz", Input::Surplus("undo", "[force]")),
            ("/clear my desk", Input::Surplus("clear", "")),
            ("/quit now", Input::Surplus("quit", "")),
            ("/good It is short", command("good", "It is short")),
            ("/dance now", Input::Unknown("dance".to_owned())),
            ("Why /retry?", message("Why /retry?")),
            ("/usr/bin is what?", message("/usr/bin is what?")),
            ("/", message("/")),
            ("//dance", message("/dance")),
        ] {
            assert_eq!(parse(line), input, "{line}");
        }
    }

    #[test]
    fn commands_and_names_are_completed() {
        let models = ["auto", "fast"].map(str::to_owned).to_vec();
        let completion = Completion { models };
        let words = |line| completion.words(line);
        assert_eq!(words("/con"), (0, vec!["/continue".to_owned()]));
        assert_eq!(words("/mod"), (0, vec!["/model ".to_owned()]));
        assert_eq!(words("/model f"), (7, vec!["fast".to_owned()]));
        assert_eq!(words("/").1.len(), COMMANDS.len());
        assert_eq!(words("/retry now").1.len(), 0);
        assert_eq!(words("Why").1.len(), 0);
    }
}

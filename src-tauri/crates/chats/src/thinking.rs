//! What a model thinks within the text of its answer: some servers leave it there, between tags.

/// What ends thoughts. Where a template has begun them, it stands alone.
pub const THOUGHT_END: &str = "</think>";
static TAGS: [(&str, &str); 2] = [("<think>", THOUGHT_END), ("<thinking>", "</thinking>")];

#[derive(Debug, Default)]
enum State {
    #[default]
    Unknown,
    /// The model thinks until this tag.
    Thinking(&'static str),
    Answering,
}

/// Divides an answer's text, as it comes, into what the model thinks and what it says.
#[derive(Debug, Default)]
pub struct WithoutThinking {
    state: State,
    /// What has not been judged yet: the beginning, or the end of what has come.
    pending: String,
    /// Nothing but white space has followed the end tag.
    has_just_thought: bool,
}

impl WithoutThinking {
    /// Adds more of the text. Returns what can be shown of the answer now.
    pub fn push(&mut self, text: &str) -> String {
        self.divide(text).1
    }

    /// Adds more of the text. Returns what can be shown now of the thoughts and of the answer.
    pub fn divide(&mut self, text: &str) -> (String, String) {
        self.pending.push_str(text);
        let mut thought = String::new();
        if matches!(self.state, State::Unknown) {
            let begun = self.pending.trim_start();
            let opened = TAGS.iter().find(|(tag, _)| begun.starts_with(tag));
            if let Some((tag, end)) = opened {
                self.state = State::Thinking(end);
                self.pending = begun[tag.len()..].to_owned();
            } else if TAGS.iter().any(|(tag, _)| tag.starts_with(begun)) {
                return (thought, String::new());
            } else {
                self.state = State::Answering;
            }
        }
        if let State::Thinking(end) = self.state {
            let Some(at) = self.pending.find(end) else {
                thought = take_but_tail(&mut self.pending, end.len());
                return (thought, String::new());
            };
            thought = self.pending[..at].to_owned();
            self.pending.drain(..at + end.len());
            self.state = State::Answering;
            self.has_just_thought = true;
        }
        let mut shown = std::mem::take(&mut self.pending);
        if self.has_just_thought {
            shown = shown.trim_start().to_owned();
            self.has_just_thought = shown.is_empty();
        }
        (thought, shown)
    }

    /// Returns whether the model thinks at the end of what has come.
    pub fn is_thinking(&self) -> bool {
        matches!(self.state, State::Thinking(_))
    }

    /// Returns what was held back of thoughts that have not ended.
    pub fn end_of_thought(&mut self) -> String {
        match self.state {
            State::Thinking(_) => std::mem::take(&mut self.pending),
            State::Unknown | State::Answering => String::new(),
        }
    }

    /// Returns what was held back of a text that has ended: the half of a tag is text.
    pub fn end(&mut self) -> String {
        match self.state {
            State::Unknown => std::mem::take(&mut self.pending),
            State::Thinking(_) | State::Answering => String::new(),
        }
    }
}

/// Splits the text of an answer into what the model thought and what it says. Without an end tag, all of it is thought. Where a template
/// has begun the thoughts, their end tag stands alone.
pub fn split(text: &str) -> (&str, &str) {
    let begun = text.trim_start();
    let opened = TAGS
        .iter()
        .find_map(|(tag, end)| Some((begun.strip_prefix(*tag)?, *end)));
    let Some((inner, end)) = opened else {
        return split_unopened(text).unwrap_or(("", text));
    };
    match inner.split_once(end) {
        Some((thought, answer)) => (thought.trim(), answer.trim_start()),
        None => (inner.trim(), ""),
    }
}

/// Splits at an end tag that stands alone at the end of a line, and not in code.
fn split_unopened(text: &str) -> Option<(&str, &str)> {
    let (thought, answer) = text.split_once(THOUGHT_END)?;
    let is_end = answer.is_empty() || answer.starts_with(['\n', '\r']);
    let is_code = thought.matches("```").count() % 2 == 1;
    let is_alone = !text.contains(TAGS[0].0) && !answer.contains(THOUGHT_END);
    (is_end && is_alone && !is_code).then(|| (thought.trim(), answer.trim_start()))
}

/// Returns the answer without what a model has thought before it, also where the end of the thoughts is missing.
pub fn without_thoughts(answer: &str) -> &str {
    match answer.rsplit_once(THOUGHT_END) {
        Some((_, rest)) => rest,
        None => split(answer).1,
    }
}

/// Takes all but the last bytes, in which a tag may have begun.
fn take_but_tail(pending: &mut String, bytes: usize) -> String {
    let tail = pending.floor_char_boundary(pending.len().saturating_sub(bytes));
    pending.drain(..tail).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thinks<const N: usize>(pieces: [&str; N]) -> [bool; N] {
        let mut thinking = WithoutThinking::default();
        pieces.map(|piece| {
            thinking.push(piece);
            thinking.is_thinking()
        })
    }

    #[test]
    fn thinking_lasts_from_its_tag_to_the_end_tag() {
        assert_eq!(
            thinks([
                "\n<thi",
                "nk>",
                "Hm…",
                " well",
                "</thi",
                "nk>Par",
                "is <think>"
            ]),
            [false, true, true, true, true, false, false]
        );
        assert_eq!(
            thinks(["<thinking>a</think>", "b", "</thinking>"]),
            [true, true, false]
        );
        assert_eq!(thinks(["<think>x</think>Paris", "<think>"]), [false, false]);
    }

    #[test]
    fn an_answer_is_shown_without_what_was_thought() {
        for (pieces, answer) in [
            (
                vec!["\n<thi", "nk>Hm…", "</thi", "nk>", "\n", "\nPar", "is"],
                "Paris",
            ),
            (vec!["<thinking>a</thinking>b <think>"], "b <think>"),
            (vec!["<think>a"], ""),
            (vec!["<thi"], "<thi"),
            (vec!["<thi", "s>"], "<this>"),
            (vec![" ", "a\n"], " a\n"),
        ] {
            let mut rest = WithoutThinking::default();
            let divided = pieces.iter().map(|piece| rest.divide(piece));
            let (mut thought, mut shown): (String, String) = divided.unzip();
            thought += &rest.end_of_thought();
            shown += &rest.end();
            assert_eq!(shown, answer);
            assert_eq!(thought.trim(), split(&pieces.concat()).0);
            assert_eq!(split(&pieces.concat()).1, answer);
        }
        assert_eq!(split(" <think> a </think> b"), ("a", "b"));
    }

    #[test]
    fn an_end_tag_alone_ends_what_a_template_has_begun() {
        for (text, divided) in [
            ("Hm.\n</think>\n\nParis", ("Hm.", "Paris")),
            ("Hm.</think>\r\nParis", ("Hm.", "Paris")),
            ("Hm.</think>", ("Hm.", "")),
        ] {
            assert_eq!(split(text), divided, "{text}");
        }
        for text in [
            "Close it with </think>, then go on.",
            "Begin with <think>\nand end with </think>\nas they do.",
            "a</think>\nb</think>\nc",
            "```\n</think>\n```",
        ] {
            assert_eq!(split(text), ("", text));
        }
    }

    #[test]
    fn a_text_without_the_tag_is_an_answer() {
        assert_eq!(thinks(["<thin", "g>", "<think>"]), [false; 3]);
        assert_eq!(thinks(["Paris", "<think>"]), [false; 2]);
        assert_eq!(thinks(["", " ", "<", "p>"]), [false; 4]);
    }
}

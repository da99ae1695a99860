//! What a model thinks within the text of its answer: some servers leave it there, between tags.

use crate::marks::overlap;
use std::mem;

/// What ends thoughts. Where a template has begun them, it stands alone.
const THOUGHT_END: &str = "</think>";
const THOUGHT_START: &str = "<think>";
static TAGS: [(&str, &str); 2] = [(THOUGHT_START, THOUGHT_END), ("<thinking>", "</thinking>")];
const FENCE: &str = "```";
/// What tells whether an end tag stands alone.
const MARKS: [&str; 3] = [THOUGHT_START, THOUGHT_END, FENCE];

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
        let mut shown = mem::take(&mut self.pending);
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
            State::Thinking(_) => mem::take(&mut self.pending),
            State::Unknown | State::Answering => String::new(),
        }
    }

    /// Returns what was held back of a text that has ended: the half of a tag is text.
    pub fn end(&mut self) -> String {
        match self.state {
            State::Unknown => mem::take(&mut self.pending),
            State::Thinking(_) | State::Answering => String::new(),
        }
    }
}

/// Finds the end tag of thoughts that a template has begun, in an answer's text as it comes. By the rules of [`split`], as far as they can
/// be applied before all has come.
#[derive(Debug, Default)]
pub struct UnopenedEnd {
    /// What may become a mark, or an end tag that something has to follow.
    pending: String,
    is_code: bool,
    is_over: bool,
}

impl UnopenedEnd {
    /// Adds more of the text. Returns what precedes the tag, which is all that can be shown if it has not come, and what follows it.
    pub fn push(&mut self, more: &str) -> (String, Option<String>) {
        let mut text = mem::take(&mut self.pending) + more;
        let mut from = 0;
        while !self.is_over {
            let found = MARKS.map(|mark| text[from..].find(mark).map(|at| (from + at, mark)));
            let Some((at, mark)) = found.into_iter().flatten().min() else {
                break;
            };
            from = at + mark.len();
            let after = text[from..].chars().next();
            match (mark, after) {
                (FENCE, _) => self.is_code = !self.is_code,
                (THOUGHT_END, None) if !self.is_code => {
                    self.pending = text.split_off(at);
                    return (text, None);
                }
                (THOUGHT_END, Some('\n' | '\r')) if !self.is_code => {
                    self.is_over = true;
                    let behind = text.split_off(from);
                    text.truncate(at);
                    return (text, Some(behind));
                }
                _ => self.is_over = true,
            }
        }
        if !self.is_over {
            let held = MARKS.map(|mark| overlap(&text[from..], mark));
            let held = held.into_iter().max().unwrap_or(0);
            self.pending = text.split_off(text.len() - held);
        }
        (text, None)
    }

    /// Returns what was held back of a text that has ended.
    pub fn end(&mut self) -> String {
        let rest = mem::take(&mut self.pending);
        if rest == THOUGHT_END {
            String::new()
        } else {
            rest
        }
    }

    /// Looks for none any more: the thoughts are known.
    pub fn stop(&mut self) {
        self.is_over = true;
    }

    /// Returns whether there is nothing to look for any more.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Returns whether a part of the text is held back.
    pub fn holds(&self) -> bool {
        !self.pending.is_empty()
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
    let is_code = thought.matches(FENCE).count() % 2 == 1;
    let is_alone = !text.contains(THOUGHT_START) && !answer.contains(THOUGHT_END);
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
    fn an_end_tag_alone_is_found_in_a_text_cut_anywhere() {
        for (text, before, behind) in [
            ("Hm.\n</think>\n\nParis", "Hm.\n", Some("\n\nParis")),
            ("Hm.</think>\r\nParis", "Hm.", Some("\r\nParis")),
            ("Hm.</think>", "Hm.", None),
            ("```\nls\n```\n</think>\nb", "```\nls\n```\n", Some("\nb")),
            ("a <b> `c` </thin", "a <b> `c` </thin", None),
        ] {
            for size in 1..=text.len() {
                let mut end = UnopenedEnd::default();
                let (mut seen, mut rest) = (String::new(), None::<String>);
                for piece in text.as_bytes().chunks(size) {
                    let (shown, found) = end.push(str::from_utf8(piece).unwrap());
                    match &mut rest {
                        Some(rest) => rest.push_str(&shown),
                        None => seen.push_str(&shown),
                    }
                    rest = rest.or(found);
                }
                seen += &end.end();
                assert_eq!(
                    (&*seen, rest.as_deref()),
                    (before, behind),
                    "{size}: {text}"
                );
            }
        }
        for text in [
            "Close it with </think>, then go on.\n</think>\n",
            "Begin with <think>\nand end with </think>\nas they do.",
            "```\n</think>\n```",
        ] {
            let mut end = UnopenedEnd::default();
            assert_eq!(end.push(text), (text.to_owned(), None));
            assert!(end.is_over() && !end.holds(), "{text}");
        }
    }

    #[test]
    fn a_text_without_the_tag_is_an_answer() {
        assert_eq!(thinks(["<thin", "g>", "<think>"]), [false; 3]);
        assert_eq!(thinks(["Paris", "<think>"]), [false; 2]);
        assert_eq!(thinks(["", " ", "<", "p>"]), [false; 4]);
    }
}

//! What a model thinks within the text of its answer: some servers leave it there, between tags.

/// The tags that begin it, and those that end it.
static TAGS: [(&str, &str); 2] = [("<think>", "</think>"), ("<thinking>", "</thinking>")];

/// Follows an answer's text as it comes.
#[derive(Debug, Default)]
pub struct InlineThinking {
    state: State,
    /// What has not been judged yet: the beginning, or the end of what has come.
    pending: String,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Unknown,
    /// The model thinks until this tag.
    Thinking(&'static str),
    Answering,
}

impl InlineThinking {
    /// Adds more of the text. Returns whether the model thinks in it.
    pub fn push(&mut self, text: &str) -> bool {
        match self.state {
            State::Answering => return false,
            State::Unknown => {
                self.pending.push_str(text);
                let begun = self.pending.trim_start();
                let opened = TAGS.iter().find(|(tag, _)| begun.starts_with(tag));
                if let Some((_, end)) = opened {
                    self.state = State::Thinking(end);
                } else if !TAGS.iter().any(|(tag, _)| tag.starts_with(begun)) {
                    self.state = State::Answering;
                }
            }
            State::Thinking(_) => self.pending.push_str(text),
        }
        if let State::Thinking(end) = self.state {
            if self.pending.contains(end) {
                self.state = State::Answering;
            } else {
                self.keep_tail(end.len());
            }
        }
        if matches!(self.state, State::Answering) {
            self.pending = String::new();
        }
        matches!(self.state, State::Thinking(_))
    }

    /// Keeps the last bytes, in which a tag may have begun.
    fn keep_tail(&mut self, bytes: usize) {
        let mut from = self.pending.len().saturating_sub(bytes);
        while !self.pending.is_char_boundary(from) {
            from -= 1;
        }
        self.pending.drain(..from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thinks<const N: usize>(pieces: [&str; N]) -> [bool; N] {
        let mut thinking = InlineThinking::default();
        pieces.map(|piece| thinking.push(piece))
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
    fn a_text_without_the_tag_is_an_answer() {
        assert_eq!(thinks(["<thin", "g>", "<think>"]), [false; 3]);
        assert_eq!(thinks(["Paris", "<think>"]), [false; 2]);
        assert_eq!(thinks(["", " ", "<", "p>"]), [false; 4]);
    }
}

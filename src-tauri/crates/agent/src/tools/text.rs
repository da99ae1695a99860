//! A file's text, which a change leaves in the form that it has: its character encoding, its mark and its ends of lines.

use std::borrow::Cow;
use tierbar_documents::charset::{TextForm, decode_with_form};

/// A file as text.
#[derive(Debug)]
pub(super) struct FileText {
    pub(super) text: String,
    pub(super) form: TextForm,
    /// The encoding was not declared.
    is_guessed: bool,
    /// Written back, it has the same bytes.
    pub(super) is_exact: bool,
}

impl FileText {
    /// Reads a file; `None` if it is no text.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        const MARK: &[u8] = b"\xef\xbb\xbf";
        let unmarked = bytes.strip_prefix(MARK);
        let read = match std::str::from_utf8(unmarked.unwrap_or(bytes)) {
            Ok(text) => Self {
                text: text.to_owned(),
                form: TextForm::utf_8(unmarked.is_some()),
                is_guessed: false,
                is_exact: true,
            },
            Err(_) => {
                let (decoded, form) = decode_with_form(bytes, None, false)?;
                Self {
                    is_exact: form.encode(&decoded.text).as_deref() == Some(bytes),
                    text: decoded.text,
                    form,
                    is_guessed: decoded.doubt.is_some(),
                }
            }
        };
        (!read.text.contains('\0')).then_some(read)
    }

    /// Says what is unusual in its encoding.
    pub(super) fn describe_form(&self) -> Option<String> {
        let name = self.form.name();
        if !self.is_exact {
            Some(format!(
                "read as {name}; some of its bytes are no letters, so it cannot be changed here"
            ))
        } else if self.is_guessed {
            Some(format!("read as {name}, by a guess: letters may be wrong"))
        } else {
            (name != "UTF-8").then(|| format!("in {name}"))
        }
    }

    /// Replaces a text that is in it exactly once, whatever its ends of lines are.
    ///
    /// # Errors
    /// How often it is there.
    pub(super) fn replace_once(&self, old: &str, new: &str) -> Result<String, usize> {
        let (plain, old) = (to_lf(&self.text), to_lf(old));
        let mut found = plain.match_indices(&*old).map(|(at, _)| at);
        let (Some(start), None) = (found.next(), found.next()) else {
            return Err(plain.matches(&*old).count());
        };
        let (start, end) = (
            place(&self.text, start),
            place(&self.text, start + old.len()),
        );
        let uses_crlf = uses_crlf(&self.text[start..end]).or_else(|| uses_crlf(&self.text));
        let new = match uses_crlf {
            Some(true) => to_crlf(new).into(),
            Some(false) => to_lf(new),
            None => new.into(),
        };
        Ok([&self.text[..start], &new, &self.text[end..]].concat())
    }

    /// Returns a whole new content, with the ends of lines that this one has.
    pub(super) fn with_own_line_ends(&self, content: &str) -> String {
        let content = content.strip_prefix('\u{feff}').unwrap_or(content);
        match uses_crlf(&self.text) {
            Some(true) => to_crlf(content),
            _ => content.to_owned(),
        }
    }
}

/// Returns where a place is, given where it is in the text with plain ends of lines.
fn place(text: &str, plain: usize) -> usize {
    let ends = text.match_indices("\r\n").enumerate();
    plain
        + ends
            .take_while(|(before, (at, _))| at - before < plain)
            .count()
}

/// Returns whether most lines end in a carriage return and a line feed; `None` without an end of a line.
fn uses_crlf(text: &str) -> Option<bool> {
    let (crlf, all) = (text.matches("\r\n").count(), text.matches('\n').count());
    (all > 0).then_some(crlf * 2 > all)
}

pub(super) fn to_lf(text: &str) -> Cow<'_, str> {
    if text.contains("\r\n") {
        text.replace("\r\n", "\n").into()
    } else {
        text.into()
    }
}

fn to_crlf(text: &str) -> String {
    to_lf(text).replace('\n', "\r\n")
}

/// Returns both texts as their difference is shown: where all lines of both end in CRLF, without the carriage returns.
pub(super) fn to_compare<'a>(before: &'a str, after: &'a str) -> (Cow<'a, str>, Cow<'a, str>) {
    let is_plain = |text: &str| text.matches("\r\n").count() == text.matches('\n').count();
    if is_plain(before) && is_plain(after) {
        (to_lf(before), to_lf(after))
    } else {
        (before.into(), after.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8]) -> FileText {
        FileText::decode(bytes).unwrap()
    }

    #[test]
    fn an_edit_matches_any_end_of_a_line_and_keeps_the_files() {
        for (before, old, new, after) in [
            ("a\r\nb\r\nc\r\n", "a\nb", "a\nx\nb", "a\r\nx\r\nb\r\nc\r\n"),
            ("a\r\nb\r\n", "b\n", "", "a\r\n"),
            ("a\r\nb\r\nc", "\nb\n", "-", "a-c"),
            ("a\r\nb\r\n", "b", "x\ny", "a\r\nx\r\ny\r\n"),
            ("a\nb\n", "a\r\nb", "a\r\nx", "a\nx\n"),
            // Lines that are not changed stay mixed, and what is new is like what it replaces.
            ("a\r\nb\nc\r\nd\n", "b\nc", "b\nx\nc", "a\r\nb\nx\nc\r\nd\n"),
            ("a\r\nb\r\nc\n", "a\nb", "a\nx", "a\r\nx\r\nc\n"),
            ("a", "a", "b\r\nc", "b\r\nc"),
        ] {
            let edited = text(before.as_bytes()).replace_once(old, new);
            assert_eq!(edited.as_deref(), Ok(after), "{before:?} {old:?}");
        }
        assert_eq!(text(b"a\r\na\n").replace_once("a\n", "x"), Err(2));
        assert_eq!(text(b"a\r\n").replace_once("b\n", "x"), Err(0));
    }

    #[test]
    fn a_new_content_keeps_the_ends_of_lines() {
        let content = |before: &str, new| text(before.as_bytes()).with_own_line_ends(new);
        assert_eq!(content("a\r\nb\r\n", "x\ny\r\n"), "x\r\ny\r\n");
        assert_eq!(content("a\nb\n", "x\ny\r\n"), "x\ny\r\n");
        assert_eq!(content("a", "x\n"), "x\n");
    }

    #[test]
    fn an_encoding_is_described_unless_it_is_utf_8() {
        for (bytes, description) in [
            ("ä".as_bytes(), ""),
            (b"\xef\xbb\xbfa", ""),
            (b"\xff\xfea\0", "in UTF-16LE"),
            ("für die Straße\n".repeat(9).as_bytes(), ""),
            (
                &[b"f\xfcr die Stra\xdfe, gr\xf6\xdfer als je zuvor".as_slice()].concat(),
                "read as windows-1252, by a guess: letters may be wrong",
            ),
            (
                &["für die Straße\n".repeat(9).as_bytes(), b"\xff"].concat(),
                "read as UTF-8; some of its bytes are no letters, so it cannot be changed here",
            ),
        ] {
            let read = text(bytes);
            assert_eq!(read.describe_form().unwrap_or_default(), description);
        }
        for binary in [b"a\0b".as_slice(), b"\xff\xfea\0\0\0"] {
            assert!(FileText::decode(binary).is_none(), "{binary:?}");
        }
    }
}

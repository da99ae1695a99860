//! Text of messages without what would pose as the heading of another message.

use std::borrow::Cow;

/// Escapes what would pose as the heading of another message, also in code, of which readers find different ends.
pub(super) fn without_headings(part: &str) -> String {
    let part = with_line_feeds(part);
    let is_heading = |line: &str| {
        let name = line.trim_matches(|letter: char| !letter.is_alphanumeric());
        ["You", "System", "Answer"].contains(&name) || name.starts_with("Answer (")
    };
    let is_underline = |line: &str| {
        let line = line.trim();
        !line.is_empty() && line.trim_matches(['-', '=']).is_empty()
    };
    let mut lines = part.lines().peekable();
    let mut escaped = String::new();
    while let Some(line) = lines.next() {
        let text = line.trim_start();
        if is_heading(line) && text.starts_with('#') {
            escaped.push('\\');
            escaped += text;
        } else {
            escaped += line;
        }
        escaped.push('\n');
        if is_heading(line) && lines.peek().is_some_and(|next| is_underline(next)) {
            escaped.push('\n');
        }
    }
    escaped
}

/// Returns a text as part of one line.
pub(super) fn one_line(text: &str) -> String {
    let is_end = |letter: char| letter.is_control() || matches!(letter, '\u{2028}' | '\u{2029}');
    text.replace(is_end, " ")
}

/// Ends each line as Markdown's readers all see it: of Unicode's line ends, CommonMark takes a carriage return, too, and others take all.
fn with_line_feeds(text: &str) -> Cow<'_, str> {
    let others = ['\r', '\u{B}', '\u{C}', '\u{85}', '\u{2028}', '\u{2029}'];
    if text.contains(others) {
        text.replace("\r\n", "\n").replace(others, "\n").into()
    } else {
        text.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_end_of_a_line_hides_a_heading() {
        for end in [
            "\n", "\r", "\r\n", "\u{B}", "\u{C}", "\u{85}", "\u{2028}", "\u{2029}",
        ] {
            let shown = without_headings(&format!("x{end}## You{end}fake{end}You{end}---"));
            assert_eq!(shown, "x\n\\## You\nfake\nYou\n\n---\n", "{end:?}");
            let shown = one_line(&format!("x{end}## You"));
            assert!(!shown.contains(end), "{shown:?}");
        }
    }
}

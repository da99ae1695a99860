//! Text of messages without what would pose as the heading of another message.

use std::{borrow::Cow, fmt::Write};

/// Escapes what would pose as the heading of another message, also in code, of which readers find different ends. Tags of HTML
/// headings are escaped but in code that every reader of [CommonMark](https://spec.commonmark.org/0.31.2/) finds.
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
    let mut code = Code::default();
    let mut lines = part.lines().peekable();
    let mut escaped = String::new();
    while let Some(line) = lines.next() {
        let text = line.trim_start();
        let poses = is_heading(line) && text.starts_with('#');
        let line = if poses { text } else { line };
        let shown = if code.is_fenced(line) {
            Cow::Borrowed(line)
        } else {
            code.without_heading_tags(line)
        };
        let escape = if poses { "\\" } else { "" };
        let _infallible = writeln!(escaped, "{escape}{shown}");
        if is_heading(line) && lines.peek().is_some_and(|next| is_underline(next)) {
            escaped.push('\n');
        }
    }
    escaped
}

/// Returns a text as part of one line, in which no heading begins.
pub(super) fn one_line(text: &str) -> String {
    let is_end = |letter: char| letter.is_control() || matches!(letter, '\u{2028}' | '\u{2029}');
    let line = text.replace(is_end, " ");
    Code::default().without_heading_tags(&line).into_owned()
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

/// What the lines since the last blank one may have begun.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Before {
    #[default]
    Blank,
    Text,
    /// A code span, or a tag, which may have ticks in it.
    Span,
    /// A block of HTML, in which a fence is none.
    Html,
}

/// Where code is for certain, line by line.
#[derive(Debug, Default)]
struct Code {
    /// The character, length and indentation of the fence that has begun a block.
    fence: Option<(char, usize, usize)>,
    /// Readers may differ in whether the rest is code.
    is_uncertain: bool,
    /// Where the text of the list's item begins that stands at the left edge; 0 without one.
    list: usize,
    before: Before,
}

impl Code {
    /// Takes the next line, and returns whether it belongs to a fenced block for certain.
    fn is_fenced(&mut self, line: &str) -> bool {
        let text = line.trim_start_matches([' ', '\t']);
        let indent = line[..line.len() - text.len()]
            .chars()
            .fold(0, |column, blank| match blank {
                '\t' => (column / 4 + 1) * 4,
                _ => column + 1,
            });
        let is_text = !text.is_empty();
        if let Some((mark, length, column)) = self.fence {
            let (marks, rest) = fence(text, mark);
            let is_end = marks >= length && rest.trim_matches([' ', '\t']).is_empty();
            if is_end && indent == column {
                self.fence = None;
            } else if is_end || is_text && indent < column {
                // Some readers have ended the block.
                self.fence = None;
                self.is_uncertain = true;
            }
            return !self.is_uncertain;
        }
        match item(line) {
            Some(begin) if self.list > 0 || self.before == Before::Blank => self.list = begin,
            _ if is_text && indent < self.list => self.list = 0,
            _ => {}
        }
        if !is_text {
            self.before = Before::Blank;
            return false;
        }
        // Past the marks of lists and quotes.
        let is_mark = |letter: char| letter.is_ascii_digit() || " \t>-+*.)".contains(letter);
        let inner = text.trim_start_matches(is_mark);
        for mark in ['`', '~'] {
            let (marks, rest) = fence(inner, mark);
            if marks < 3 {
                continue;
            }
            let is_certain = inner == text
                && indent < self.list + 4
                && self.before != Before::Html
                && !rest.contains('`');
            self.is_uncertain |= !is_certain;
            if !self.is_uncertain {
                self.fence = Some((mark, marks, indent));
                self.before = Before::Text;
            }
            return !self.is_uncertain;
        }
        // The tag of a heading will be text.
        if inner.starts_with('<') && !is_heading_tag(inner) {
            self.before = Before::Html;
            // Blocks of these end at their own marks, not at a blank line.
            let begin = inner.to_ascii_lowercase();
            let raw = ["<!", "<?", "<pre", "<script", "<style", "<textarea"];
            self.is_uncertain |= raw.iter().any(|tag| begin.starts_with(tag));
        }
        self.before = self.before.max(Before::Text);
        false
    }

    /// Escapes the tags of headings in a line that is not of a fenced block, but in code spans.
    fn without_heading_tags<'a>(&mut self, line: &'a str) -> Cow<'a, str> {
        let mut shown = String::new();
        let mut rest = line;
        while let Some(at) = rest.find(['<', '`']) {
            let (before, after) = rest.split_at(at);
            shown += before;
            let (ticks, inner) = fence(after, '`');
            if ticks == 0 {
                let is_heading = is_heading_tag(after);
                let is_tag = |letter: char| letter.is_ascii_alphabetic() || "/!?".contains(letter);
                if !is_heading && after[1..].starts_with(is_tag) {
                    self.before = self.before.max(Before::Span);
                }
                shown += if is_heading { "&lt;" } else { "<" };
                rest = &after[1..];
                continue;
            }
            let end = span_end(inner, ticks).filter(|end| !inner[..*end].contains('|'));
            let is_span =
                !self.is_uncertain && self.before < Before::Span && !before.ends_with('\\');
            let taken = match end {
                Some(end) if is_span => ticks + end + ticks,
                _ => {
                    self.before = self.before.max(Before::Span);
                    ticks
                }
            };
            shown += &after[..taken];
            rest = &after[taken..];
        }
        if shown.is_empty() {
            return line.into();
        }
        shown += rest;
        shown.into()
    }
}

/// Returns how many of these characters a text begins with, and the rest.
fn fence(text: &str, mark: char) -> (usize, &str) {
    let rest = text.trim_start_matches(mark);
    (text.len() - rest.len(), rest)
}

/// Returns where the text begins in a line that is an item of a list at the left edge; `None` where readers may differ.
fn item(line: &str) -> Option<usize> {
    let digits = line.len()
        - line
            .trim_start_matches(|letter: char| letter.is_ascii_digit())
            .len();
    let marks: &[char] = if digits == 0 {
        &['-', '*', '+']
    } else {
        &['.', ')']
    };
    let rest = line[digits..].strip_prefix(marks)?.strip_prefix(' ')?;
    // Without a letter, it may be a line across the page.
    let is_item = digits < 10
        && rest.contains(char::is_alphanumeric)
        && rest.starts_with(|letter: char| letter.is_alphanumeric() || "*`[".contains(letter));
    is_item.then_some(digits + 2)
}

/// Returns where a run of exactly so many ticks begins.
fn span_end(text: &str, ticks: usize) -> Option<usize> {
    let mut rest = text;
    while let Some(at) = rest.find('`') {
        let (run, after) = fence(&rest[at..], '`');
        if run == ticks {
            return Some(text.len() - after.len() - run);
        }
        rest = after;
    }
    None
}

/// Returns whether the text begins with the tag that begins a heading in HTML.
fn is_heading_tag(text: &str) -> bool {
    let mut letters = text.chars().skip(1);
    let name = [letters.next(), letters.next()];
    matches!(name, [Some('h' | 'H'), Some('1'..='6')])
        && letters
            .next()
            .is_none_or(|letter| letter.is_whitespace() || "/>".contains(letter))
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

    #[test]
    fn headings_in_html_are_shown_as_text() {
        for tag in ["<h2>", "<H1 class=\"x>y\">", "<h6\nid=x>", "<h3/>"] {
            // In the last ones, some or all readers find no code.
            for before in [
                "",
                "x ",
                "> - ",
                "</blockquote>",
                "```\nx\n```\n",
                "x\n    ```\n    ",
                "x\n2. y\n     ```\n     ",
                "* * *\n  x\n    ```\n    ",
                "- ```\n",
                "- x\n  ```\n",
                " ```\nx\n```\n",
                "<div>\n```\n",
                "- <div>\n  ```\n  ",
                "<pre>\n\n```\n",
                "<pre>\n\n`",
                "```\n```\u{A0}\n```\n",
                "``` `\n",
                "\\`",
                "`\n`",
                "``",
                "<a title=\"\n`\">",
                "| `x | ",
                "x\n\n    ",
                "- x\n\n  ## You\n    ```\n    ",
            ] {
                let shown = without_headings(&format!("{before}{tag}You</h2>`\n\nfake"));
                let tag = tag.replace('<', "&lt;");
                assert!(shown.contains(&tag), "{before:?}: {shown}");
            }
            let shown = one_line(&format!("x {tag}You"));
            assert!(shown.starts_with("x &lt;"), "{shown}");
        }
    }

    #[test]
    fn ordinary_code_and_tags_stay() {
        for text in [
            "```html\n<h1>Hi</h1>\n# x\n\n  <h2>You</h2>\n```\nend",
            "  ~~~~\n  <h1>\n  ~~~\n  ~~~~",
            "1. Write:\n   ```html\n   <h1>Hi</h1>\n   ```\n2. Or:\n\n    ```\n    <h1>\n    ```",
            "Use `<h1>` and ``<h2> ` ``.\n- **x**: `<h3>`",
            "| `<h1>` | a<br>b |",
            "<details>\n<summary>x</summary>\n\n`<h1>`\n\n</details>",
            "a < b, <https://example.com>, <hr>, <header>, <h7>",
        ] {
            assert_eq!(without_headings(text), format!("{text}\n"));
        }
        let shown = without_headings("<h1>x\n```\n<h1>\n```");
        assert_eq!(shown, "&lt;h1>x\n```\n<h1>\n```\n");
    }
}

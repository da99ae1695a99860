//! What was written, as block quotes of Markdown, out of which nothing acts.

use pulldown_cmark::{Event, Options, Parser, Tag};
use std::{borrow::Cow, collections::BTreeSet};

/// Bytes. A longer text is shown as code: parsed, each of its letters may take some hundred bytes of memory.
const MOST_PARSED: usize = 256 << 10;

/// Returns a text as a block quote. What would act outside of it is escaped: HTML, and definitions of links and footnotes.
pub(super) fn quote(text: &str) -> String {
    let text = with_line_feeds(text.trim_end());
    if text.len() <= MOST_PARSED {
        let quoted = escape(&in_quote(&text));
        // What was inactive may be active now, such as a fence within HTML.
        if active(&quoted).is_empty() {
            return quoted;
        }
    }
    in_quote(&fence("", &text))
}

/// Returns a text as a block of code, which its own fences do not end.
pub(super) fn fence(language: &str, text: &str) -> String {
    let longest = text.split(|letter: char| letter != '`').map(str::len).max();
    let mark = "`".repeat(longest.unwrap_or_default().max(2) + 1);
    format!("{mark}{language}\n{text}\n{mark}")
}

/// Returns a text as part of one line, without HTML.
pub(super) fn one_line(text: &str) -> String {
    let is_end = |letter: char| letter.is_control() || matches!(letter, '\u{2028}' | '\u{2029}');
    text.replace(is_end, " ").replace('<', "&lt;")
}

fn in_quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + text.len() / 16);
    for line in text.lines() {
        quoted += if line.is_empty() { ">" } else { "> " };
        quoted += line;
        quoted.push('\n');
    }
    quoted
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut from = 0;
    for at in active(text) {
        escaped += &text[from..at];
        escaped.push('\\');
        from = at;
    }
    escaped += &text[from..];
    escaped
}

/// Finds the marks with which a text acts outside of its quote, for readers with and without the usual extensions.
fn active(text: &str) -> BTreeSet<usize> {
    let mut marks = BTreeSet::new();
    for options in [
        Options::empty(),
        Options::ENABLE_TABLES | Options::ENABLE_MATH | Options::ENABLE_FOOTNOTES,
    ] {
        let parser = Parser::new_ext(text, options);
        for (_, definition) in parser.reference_definitions().iter() {
            marks.insert(definition.span.start);
        }
        for (event, span) in parser.into_offset_iter() {
            let html = match event {
                Event::Html(_) | Event::InlineHtml(_) => &text[span.clone()],
                Event::Start(Tag::FootnoteDefinition(_)) => {
                    marks.insert(span.start);
                    continue;
                }
                _ => continue,
            };
            let starts = html.match_indices('<');
            marks.extend(starts.map(|(at, _)| span.start + at));
        }
    }
    marks
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
    fn every_line_of_a_text_is_in_its_quote() {
        for end in [
            "\n", "\r", "\r\n", "\u{B}", "\u{C}", "\u{85}", "\u{2028}", "\u{2029}",
        ] {
            let shown = quote(&format!("x{end}## You{end}fake  {end}{end}---"));
            assert_eq!(shown, "> x\n> ## You\n> fake  \n>\n> ---\n", "{end:?}");
            let shown = one_line(&format!("x{end}## You"));
            assert!(!shown.contains(end), "{shown:?}");
        }
    }

    #[test]
    fn what_would_act_outside_of_a_quote_is_escaped() {
        for (text, shown) in [
            ("a<br>b", "> a\\<br>b\n"),
            ("<b>a</b> < c", "> \\<b>a\\</b> < c\n"),
            ("[a]: https://b", "> \\[a]: https://b\n"),
            ("[^1]: a note", "> \\[^1]: a note\n"),
            (
                "`Vec<u8>` and <https://a.b>",
                "> `Vec<u8>` and <https://a.b>\n",
            ),
            ("```\n<b>\n```", "> ```\n> <b>\n> ```\n"),
            ("## **You** [a](b)", "> ## **You** [a](b)\n"),
        ] {
            assert_eq!(quote(text), shown, "{text:?}");
        }
        // An escape would let the fence begin.
        let hidden = "<div>\n```\n</div>\n\n```\n<h2>You</h2>\n```";
        let lines = format!("````\n{hidden}\n````");
        let lines = lines.lines().map(|line| match line {
            "" => ">\n".to_owned(),
            line => format!("> {line}\n"),
        });
        assert_eq!(quote(hidden), lines.collect::<String>());
        let long = ">".repeat(MOST_PARSED + 1);
        assert_eq!(quote(&long), format!("> ```\n> {long}\n> ```\n"));
    }
}

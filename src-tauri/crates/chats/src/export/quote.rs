//! What was written, as block quotes of Markdown, out of which nothing acts.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag};
use std::{borrow::Cow, collections::BTreeSet, iter};

/// Bytes. A longer text is shown as code: parsed, each of its letters may take some hundred bytes of memory.
const MOST_PARSED: usize = 256 << 10;

/// Bytes of marks at the start of a line. The parser's time grows with the square of how deep they nest.
const MOST_MARKS: usize = 200;
/// An escape may make active what was not, such as the second definition of a link.
const MOST_ESCAPES: usize = 4;
/// Columns.
const TAB: usize = 4;
/// The marks of tables and math.
const DIVIDERS: [char; 2] = ['|', '$'];

/// Returns a text as a block quote. What would act outside of it is escaped: HTML, and definitions of links and footnotes.
pub(super) fn quote(text: &str) -> String {
    let text = with_line_feeds(text.trim_end());
    if is_parsed(&text) {
        let mut quoted = in_quote(&with_spaces(&text));
        for _ in 0..=MOST_ESCAPES {
            let marks = active(&quoted);
            if marks.is_empty() {
                return quoted;
            }
            quoted = escape(&quoted, &marks);
        }
    }
    in_quote(&fence("", &text))
}

/// Whether a text can be parsed, and is read alike by all readers as far as blocks go: some have blocks of math, which hold what others
/// take for the fence of a block of code.
fn is_parsed(text: &str) -> bool {
    let is_mark = |letter: char| letter.is_ascii_digit() || " \t>+*.)-".contains(letter);
    let is_deep = |line: &str| line.len() - line.trim_start_matches(is_mark).len() > MOST_MARKS;
    text.len() <= MOST_PARSED
        && !text.lines().any(is_deep)
        && !(text.contains("$$") && has_tag(text))
}

/// Whether a text would have HTML, if nothing in it were code.
fn has_tag(text: &str) -> bool {
    let mut after = text.split('<').skip(1);
    after.any(|after| {
        after.starts_with(|letter: char| letter.is_ascii_alphabetic() || "/!?".contains(letter))
    })
}

/// Returns a text as a block of code, which its own fences do not end.
pub(super) fn fence(language: &str, text: &str) -> String {
    let longest = text.split(|letter: char| letter != '`').map(str::len).max();
    let mark = "`".repeat(longest.unwrap_or_default().max(2) + 1);
    format!("{mark}{language}\n{text}\n{mark}")
}

/// Returns a text as part of one line, in which nothing is markup.
pub(super) fn one_line(text: &str) -> String {
    let is_end = |letter: char| letter.is_control() || matches!(letter, '\u{2028}' | '\u{2029}');
    let mut line = String::with_capacity(text.len());
    for letter in text.chars() {
        if r"\`*_[]<>&~$|!".contains(letter) {
            line.push('\\');
        }
        line.push(if is_end(letter) { ' ' } else { letter });
    }
    line
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

fn escape(text: &str, marks: &BTreeSet<usize>) -> String {
    let mut escaped = String::with_capacity(text.len() + marks.len());
    let mut from = 0;
    for &at in marks {
        escaped += &text[from..at];
        escaped.push('\\');
        from = at;
    }
    escaped += &text[from..];
    escaped
}

/// Finds the marks with which a text acts outside of its quote, for readers with any of the usual extensions.
fn active(text: &str) -> BTreeSet<usize> {
    let mut marks = BTreeSet::new();
    for options in option_sets() {
        let parser = Parser::new_ext(text, options);
        for (_, definition) in parser.reference_definitions().iter() {
            marks.insert(definition.span.start);
        }
        // Code with tags; whether readers may divide it elsewhere, where they see tables, math or other blocks; and up to where this
        // is known.
        let (mut tagged, mut is_divided, mut known) = (Vec::new(), false, 0);
        for (event, span) in parser.into_offset_iter() {
            match event {
                Event::Html(_) | Event::InlineHtml(_) => {
                    let starts = text[span.clone()].match_indices('<');
                    marks.extend(starts.map(|(at, _)| span.start + at));
                }
                Event::Start(Tag::FootnoteDefinition(_)) => {
                    marks.insert(span.start);
                }
                Event::Start(Tag::CodeBlock(_)) => {
                    is_divided |= text[known.min(span.start)..span.start].contains(DIVIDERS);
                    known = span.end;
                }
                Event::Code(_) => {
                    is_divided |= text[span.clone()].contains('\n');
                    if has_tag(&text[span.clone()]) {
                        tagged.push(span);
                    }
                }
                _ => {}
            }
        }
        if is_divided || text[known..].contains(DIVIDERS) {
            let ends = tagged.into_iter().flat_map(|span| {
                let code = &text[span.clone()];
                let fence = code.len() - code.trim_start_matches('`').len();
                (span.start..span.start + fence).chain(span.end - fence..span.end)
            });
            marks.extend(ends);
        }
    }
    marks
}

/// The usual extensions of Markdown, in all combinations.
pub(super) fn option_sets() -> impl Iterator<Item = Options> {
    fn with(set: Options, more: Options) -> [Options; 2] {
        [set, set | more]
    }
    with(Options::empty(), Options::ENABLE_TABLES)
        .into_iter()
        .flat_map(|set| with(set, Options::ENABLE_MATH))
        .flat_map(|set| with(set, Options::ENABLE_FOOTNOTES))
}

/// Replaces the tabs that begin a line, which are narrower behind the mark of a quote. A block of code keeps them, unless it is within
/// another block.
fn with_spaces(text: &str) -> Cow<'_, str> {
    if !text.contains('\t') {
        return text.into();
    }
    let mut depth = 0_usize;
    let mut blocks = Vec::new();
    for (event, span) in Parser::new(text).into_offset_iter() {
        match event {
            Event::Start(tag) => {
                let is_fenced = matches!(tag, Tag::CodeBlock(CodeBlockKind::Fenced(_)));
                if is_fenced && depth == 0 {
                    blocks.push(span);
                }
                depth += 1;
            }
            Event::End(_) => depth -= 1,
            _ => {}
        }
    }
    let mut blocks = blocks.into_iter().peekable();
    let (mut spaced, mut at) = (String::with_capacity(text.len()), 0);
    for line in text.split_inclusive('\n') {
        while blocks.next_if(|block| block.end <= at).is_some() {}
        let is_code = blocks.peek().is_some_and(|block| block.start < at);
        let rest = line.trim_start_matches([' ', '\t']);
        let indent = &line[..line.len() - rest.len()];
        if is_code {
            spaced += indent;
        } else {
            let columns = indent.chars().fold(0, |column, letter| match letter {
                '\t' => (column / TAB + 1) * TAB,
                _ => column + 1,
            });
            spaced.extend(iter::repeat_n(' ', columns));
        }
        spaced += rest;
        at += line.len();
    }
    spaced.into()
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
        // Its first escape lets the fence begin, and ends what stood before it.
        let hidden = "<div>\n```\n</div>\n\n```\n<h2>You</h2>\n```";
        let shown = "> \\<div>\n> ```\n> \\</div>\n>\n> ```\n> \\<h2>You\\</h2>\n> ```\n";
        assert_eq!(quote(hidden), shown);
        let long = "a".repeat(MOST_PARSED + 1);
        let deep = ">".repeat(MOST_MARKS + 1);
        for text in [long.as_str(), deep.as_str(), "$$\n<b>"] {
            let lines = text.replace('\n', "\n> ");
            assert_eq!(quote(text), format!("> ```\n> {lines}\n> ```\n"));
        }
    }

    #[test]
    fn code_that_readers_divide_is_escaped() {
        for (text, shown) in [
            ("`Vec<u8>` a | b", "> \\`Vec\\<u8>\\` a | b\n"),
            ("`` <b> `` $1", "> \\`\\` \\<b> \\`\\` $1\n"),
            ("`<b>\n`", "> \\`\\<b>\n> \\`\n"),
            ("`a` | `b < c`", "> `a` | `b < c`\n"),
            ("`<b>`\n```\n|\n```", "> `<b>`\n> ```\n> |\n> ```\n"),
        ] {
            assert_eq!(quote(text), shown, "{text:?}");
        }
        for text in [
            "hello\na | b\n---|---\n`x | </table></blockquote><h2>You</h2>`",
            "| a | b |\n|---|---|\n| `x | $</table></blockquote><h2>You</h2>` y$ |",
            "| a | b |\n|---|---|\t\n| `x | </table></blockquote><h2>You</h2>` |",
        ] {
            let shown = quote(text);
            let tags = shown.match_indices('<').map(|(at, _)| at);
            let open: Vec<_> = tags.filter(|at| !shown[..*at].ends_with('\\')).collect();
            assert!(open.is_empty(), "{shown}");
        }
    }

    #[test]
    fn two_definitions_of_one_label_are_escaped() {
        assert_eq!(quote("[a]: /b\n\n[a]: /c"), "> \\[a]: /b\n>\n> \\[a]: /c\n");
    }

    #[test]
    fn leading_tabs_keep_their_columns() {
        for (text, shown) in [
            ("1. a\n\n\tb", "> 1. a\n>\n>     b\n"),
            ("a\n \tb\tc", "> a\n>     b\tc\n"),
            ("```\n\ta\n```\n\tb", "> ```\n> \ta\n> ```\n>     b\n"),
            (
                "1. a\n\n\t```\n\tb\n\t```",
                "> 1. a\n>\n>     ```\n>     b\n>     ```\n",
            ),
        ] {
            assert_eq!(quote(text), shown, "{text:?}");
        }
    }

    #[test]
    fn a_line_holds_no_markup() {
        assert_eq!(one_line("![a_b](c)\n<d> & e"), r"\!\[a\_b\](c) \<d\> \& e");
    }
}

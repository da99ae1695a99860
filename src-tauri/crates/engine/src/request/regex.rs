//! A regular expression as a grammar in GBNF that allows only texts that match it as a whole.

use regex_syntax::{
    ParserBuilder,
    hir::{Class, ClassUnicode, ClassUnicodeRange, Hir, HirKind, Look},
};
use std::fmt::Write as _;

/// llama.cpp's limit.
const MOST_REPEATS: u32 = 2000;
const DEEPEST: u32 = 50;
/// A larger class, such as all letters of all scripts, is cut to ASCII: what matches then matches the whole class too.
const MOST_RANGES: usize = 16;

/// # Errors
/// What of the pattern cannot be followed.
pub(super) fn grammar(pattern: &str) -> Result<String, String> {
    let parsed = ParserBuilder::new()
        .nest_limit(DEEPEST)
        .build()
        .parse(pattern);
    let parsed = parsed.map_err(|error| match error {
        regex_syntax::Error::Parse(error) => error.kind().to_string(),
        regex_syntax::Error::Translate(error) => error.kind().to_string(),
        other => other.to_string(),
    })?;
    let mut grammar = "root ::= ".to_owned();
    write(&parsed, true, true, &mut grammar)?;
    Ok(grammar)
}

/// A text as a literal.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = "\"".to_owned();
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            character => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}

/// `begins`, `ends`: whether it is at the start or at the end of the text, where an anchor says nothing.
fn write(hir: &Hir, begins: bool, ends: bool, out: &mut String) -> Result<(), String> {
    match hir.kind() {
        HirKind::Empty => out.push_str("\"\""),
        HirKind::Literal(literal) => {
            let text =
                std::str::from_utf8(&literal.0).map_err(|_| "it has bytes that are not text")?;
            out.push_str(&quoted(text));
        }
        HirKind::Class(Class::Unicode(class)) => write_class(class, out)?,
        HirKind::Class(Class::Bytes(_)) => return Err("it has a class of bytes".to_owned()),
        HirKind::Look(Look::Start) if begins => out.push_str("\"\""),
        HirKind::Look(Look::End) if ends => out.push_str("\"\""),
        HirKind::Look(_) => {
            return Err(
                "it has a word boundary, or an anchor that is not at its start or end".to_owned(),
            );
        }
        HirKind::Repetition(repetition) => {
            let (min, max) = (repetition.min, repetition.max);
            if min.max(max.unwrap_or(0)) > MOST_REPEATS {
                return Err(format!(
                    "it repeats something more than {MOST_REPEATS} times"
                ));
            }
            out.push('(');
            write(&repetition.sub, false, false, out)?;
            out.push(')');
            match (min, max) {
                (0, None) => out.push('*'),
                (1, None) => out.push('+'),
                (0, Some(1)) => out.push('?'),
                (min, None) => append(out, format_args!("{{{min},}}")),
                (min, Some(max)) => append(out, format_args!("{{{min},{max}}}")),
            }
        }
        HirKind::Capture(capture) => {
            out.push('(');
            write(&capture.sub, begins, ends, out)?;
            out.push(')');
        }
        HirKind::Concat(parts) => {
            // Anchors take no room.
            let takes_room = |part: &Hir| !matches!(part.kind(), HirKind::Look(_));
            let first = parts.iter().position(takes_room).unwrap_or(parts.len());
            let last = parts.iter().rposition(takes_room).unwrap_or(0);
            for (at, part) in parts.iter().enumerate() {
                if at > 0 {
                    out.push(' ');
                }
                write(part, begins && at <= first, ends && at >= last, out)?;
            }
        }
        HirKind::Alternation(parts) => {
            out.push('(');
            for (at, part) in parts.iter().enumerate() {
                if at > 0 {
                    out.push_str(" | ");
                }
                write(part, begins, ends, out)?;
            }
            out.push(')');
        }
    }
    Ok(())
}

fn write_class(class: &ClassUnicode, out: &mut String) -> Result<(), String> {
    let mut class = class.clone();
    if class.ranges().len() > MOST_RANGES {
        let mut ascii = class.clone();
        ascii.intersect(&ClassUnicode::new([ClassUnicodeRange::new('\0', '\x7f')]));
        if !ascii.ranges().is_empty() {
            class = ascii;
        }
    }
    if class.ranges().is_empty() {
        return Err("it has a class without a character".to_owned());
    }
    out.push('[');
    for range in class.ranges() {
        // No grammar can name the character 0, and no answer needs it.
        let (start, end) = (range.start().max('\x01'), range.end());
        if start > end {
            continue;
        }
        escape(start, out);
        if start < end {
            out.push('-');
            escape(end, out);
        }
    }
    out.push(']');
    Ok(())
}

fn escape(character: char, out: &mut String) {
    match u32::from(character) {
        _ if character.is_ascii_alphanumeric() => out.push(character),
        code @ 0..=0x7f => append(out, format_args!("\\x{code:02X}")),
        code @ 0x80..=0xffff => append(out, format_args!("\\u{code:04X}")),
        code => append(out, format_args!("\\U{code:08X}")),
    }
}

fn append(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _written = out.write_fmt(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_a_grammar() {
        for (pattern, expected) in [
            ("abc", r#""abc""#),
            (r"a\.b|c d", r#"("a.b" | "c d")"#),
            (r"^\d{3}-\d{4}$", r#""" ([0-9]){3,3} "-" ([0-9]){4,4} """#),
            (r"(?:yes|no)!?", r#"("yes" | "no") ("!")?"#),
            (r"\w+", "([0-9A-Z\\x5Fa-z])+"),
            (r"[^a]*?", r"([\x01-\x60b-\U0010FFFF])*"),
            (r"x{2,}(y|é)", r#"("x"){2,} ([y\u00E9])"#),
            (r#"a"\\"#, r#""a\"\\""#),
            ("", r#""""#),
        ] {
            assert_eq!(
                grammar(pattern).as_deref(),
                Ok(&*format!("root ::= {expected}")),
                "{pattern}"
            );
        }
    }

    #[test]
    fn what_no_grammar_can_follow_is_refused() {
        for pattern in [
            r"(a)\1",
            "(?=a)b",
            r"\bword\b",
            "a^b",
            "a$b",
            "(",
            "a{3000}",
            "(^a)*",
            r"(a$|b)c",
        ] {
            assert!(grammar(pattern).is_err(), "{pattern}");
        }
        let deep = format!("{}a{}", "(".repeat(100), ")".repeat(100));
        assert!(grammar(&deep).is_err());
    }
}

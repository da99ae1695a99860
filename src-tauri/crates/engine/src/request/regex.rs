//! A regular expression as a grammar in GBNF that allows only texts that match it as a whole.

use regex_syntax::{
    ast::{
        Ast, ClassAscii, ClassAsciiKind, ClassBracketed, ClassPerl, ClassPerlKind, ClassSet,
        ClassSetItem, parse::ParserBuilder,
    },
    hir::{Class, ClassUnicode, Hir, HirKind, Look, translate::Translator},
};
use std::fmt::Write as _;

/// llama.cpp's limit.
const MOST_REPEATS: u32 = 2000;
const DEEPEST: u32 = 50;
/// llama.cpp holds the characters of each token against all of them. All letters of all scripts are more; no script alone is.
const MOST_RANGES: usize = 300;

/// # Errors
/// What of the pattern cannot be followed.
pub(super) fn grammar(pattern: &str) -> Result<String, String> {
    let tree = ParserBuilder::new()
        .nest_limit(DEEPEST)
        .build()
        .parse(pattern);
    let mut tree = tree.map_err(|error| error.kind().to_string())?;
    narrow(&mut tree);
    let parsed = Translator::new().translate(pattern, &tree);
    let parsed = parsed.map_err(|error| error.kind().to_string())?;
    let mut grammar = "root ::= ".to_owned();
    write(&parsed, true, true, &mut grammar)?;
    Ok(grammar)
}

/// Has `\w`, `\d` and `\s` mean ASCII: in all scripts, they have hundreds of ranges, and who writes `\d` means a digit from 0 to 9.
fn narrow(tree: &mut Ast) {
    match tree {
        Ast::ClassPerl(class) => {
            let narrowed = ClassBracketed {
                span: class.span,
                negated: false,
                kind: ClassSet::Item(ClassSetItem::Ascii(ascii(class))),
            };
            *tree = Ast::ClassBracketed(Box::new(narrowed));
        }
        Ast::ClassBracketed(class) => narrow_set(&mut class.kind),
        Ast::Repetition(repetition) => narrow(&mut repetition.ast),
        Ast::Group(group) => narrow(&mut group.ast),
        Ast::Alternation(alternation) => alternation.asts.iter_mut().for_each(narrow),
        Ast::Concat(concat) => concat.asts.iter_mut().for_each(narrow),
        _ => {}
    }
}

fn narrow_set(set: &mut ClassSet) {
    match set {
        ClassSet::Item(item) => narrow_item(item),
        ClassSet::BinaryOp(both) => {
            narrow_set(&mut both.lhs);
            narrow_set(&mut both.rhs);
        }
    }
}

fn narrow_item(item: &mut ClassSetItem) {
    match item {
        ClassSetItem::Perl(class) => {
            let narrowed = ascii(class);
            *item = ClassSetItem::Ascii(narrowed);
        }
        ClassSetItem::Bracketed(class) => narrow_set(&mut class.kind),
        ClassSetItem::Union(union) => union.items.iter_mut().for_each(narrow_item),
        _ => {}
    }
}

fn ascii(class: &ClassPerl) -> ClassAscii {
    ClassAscii {
        span: class.span,
        kind: match class.kind {
            ClassPerlKind::Digit => ClassAsciiKind::Digit,
            ClassPerlKind::Space => ClassAsciiKind::Space,
            ClassPerlKind::Word => ClassAsciiKind::Word,
        },
        negated: class.negated,
    }
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
    let count = class.ranges().len();
    if count > MOST_RANGES {
        return Err(format!(
            "it has a class of {count} ranges of characters, and the limit is {MOST_RANGES}: name scripts, such as \\p{{Latin}}"
        ));
    }
    if count == 0 {
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
            (r"[\d_]", "[0-9\\x5F]"),
            (r"\D", r"[\x01-\x2F\x3A-\U0010FFFF]"),
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
    fn a_class_of_many_ranges_is_whole() {
        let letters = "[aceàâæçéèêëîïôœùûüÿāēīōūăĕĭŏŭąęįų]";
        for pattern in [letters, r"\p{Latin}"] {
            let grammar = grammar(pattern).unwrap();
            assert!(grammar.matches("\\u").count() > 16, "{grammar}");
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
            r"\p{L}",
        ] {
            assert!(grammar(pattern).is_err(), "{pattern}");
        }
        let deep = format!("{}a{}", "(".repeat(100), ")".repeat(100));
        assert!(grammar(&deep).is_err());
    }
}

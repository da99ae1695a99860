//! A regular expression as a grammar in GBNF that allows only texts that match it as a whole.

use crate::texts::texts_grammar;
use regex_syntax::{
    ast::{
        Ast, ClassAscii, ClassAsciiKind, ClassBracketed, ClassPerl, ClassPerlKind, ClassSet,
        ClassSetItem, parse::ParserBuilder,
    },
    hir::{
        Class, ClassUnicode, ClassUnicodeRange, Hir, HirKind, Literal, Look, translate::Translator,
    },
};
use serde_json::Value;
use std::{fmt::Write as _, slice};

/// llama.cpp's limit.
const MOST_REPEATS: u32 = 2000;
const DEEPEST: u32 = 50;
/// llama.cpp holds the characters of each token against all of them. All letters of all scripts are more; no script alone is.
const MOST_RANGES: usize = 300;
/// It holds each token against all alternatives that are still possible.
pub(crate) const MOST_ALTERNATIVES: usize = 256;

/// Returns a grammar of the texts that match the pattern, or what of it cannot be followed.
pub(crate) fn pattern_grammar(pattern: &str) -> Result<String, String> {
    let mut grammar = "root ::= ".to_owned();
    write_expression(&parse_pattern(pattern)?, true, true, false, &mut grammar)?;
    Ok(grammar)
}

/// Returns a grammar of the JSON strings that have a match of the pattern, as a schema's `pattern` means it, and at least `fewest`
/// and at most `most` characters.
pub(crate) fn json_string_grammar(
    pattern: &str,
    fewest: u32,
    most: Option<u32>,
) -> Result<String, String> {
    let parsed = limit_length(parse_pattern(pattern)?, fewest, most)?;
    let mut grammar = format!("{QUOTE} ");
    write_search(&parsed, &mut grammar)?;
    append(&mut grammar, format_args!(" {QUOTE}"));
    Ok(grammar)
}

const QUOTE: &str = "\"\\\"\"";
/// A character of a JSON string.
const CHARACTER: &str = r#"([^"\\\x7F\x00-\x1F] | [\\] ["\\bfnrt])"#;

/// Returns a grammar of the JSON strings of at least `fewest` and at most `most` characters, which may be more than llama.cpp repeats.
pub(crate) fn json_text_grammar(fewest: u32, most: u32) -> String {
    format!("{QUOTE} ({}) {QUOTE}", characters_grammar(fewest, most))
}

fn characters_grammar(fewest: u32, most: u32) -> String {
    if most <= MOST_REPEATS {
        return format!("{CHARACTER}{{{fewest},{most}}}");
    }
    let shorter = format!(
        "{CHARACTER}{{{},{}}}",
        fewest.min(MOST_REPEATS - 1),
        MOST_REPEATS - 1
    );
    let rest = characters_grammar(fewest.saturating_sub(MOST_REPEATS), most - MOST_REPEATS);
    let longer = format!("{CHARACTER}{{{MOST_REPEATS}}} ({rest})");
    if fewest < MOST_REPEATS {
        format!("{shorter} | {longer}")
    } else {
        longer
    }
}

fn parse_pattern(pattern: &str) -> Result<Hir, String> {
    let tree = ParserBuilder::new()
        .nest_limit(DEEPEST)
        .build()
        .parse(pattern);
    let mut tree = tree.map_err(|error| error.kind().to_string())?;
    narrow_classes(&mut tree);
    let parsed = Translator::new().translate(pattern, &tree);
    parsed.map_err(|error| error.kind().to_string())
}

/// Has what a pattern finds have so many characters.
fn limit_length(parsed: Hir, fewest: u32, most: Option<u32>) -> Result<Hir, String> {
    if fewest == 0 && most.is_none() {
        return Ok(parsed);
    }
    let refused = || Err("it cannot be combined with a length".to_owned());
    let parts = match parsed.kind() {
        HirKind::Concat(parts) => parts,
        _ => slice::from_ref(&parsed),
    };
    let (start, middle, end) = match parts {
        [start, middle @ .., end] if is_look(start, Look::Start) && is_look(end, Look::End) => {
            (start, middle, end)
        }
        _ => {
            let (shortest, _) = match_length(&parsed);
            return match most {
                None if shortest >= fewest => Ok(parsed),
                _ => refused(),
            };
        }
    };
    if let [one] = middle
        && let HirKind::Repetition(repetition) = one.kind()
        && match_length(&repetition.sub) == (1, Some(1))
    {
        let mut limited = repetition.clone();
        limited.min = limited.min.max(fewest);
        limited.max = [limited.max, most].into_iter().flatten().min();
        if limited.max.is_some_and(|max| max < limited.min) {
            return Err("no text has its form and its length".to_owned());
        }
        let parts = vec![start.clone(), Hir::repetition(limited), end.clone()];
        return Ok(Hir::concat(parts));
    }
    let (shortest, longest) = match_length(&Hir::concat(middle.to_vec()));
    let fits = most.is_none_or(|most| longest.is_some_and(|longest| longest <= most));
    if shortest >= fewest && fits {
        Ok(parsed)
    } else {
        refused()
    }
}

/// The fewest and the most characters of a match; no most if there is none.
fn match_length(hir: &Hir) -> (u32, Option<u32>) {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => (0, Some(0)),
        HirKind::Literal(literal) => {
            let count = String::from_utf8_lossy(&literal.0).chars().count();
            let count = u32::try_from(count).ok();
            (count.unwrap_or(0), count)
        }
        HirKind::Class(_) => (1, Some(1)),
        HirKind::Repetition(repetition) => {
            let (shortest, longest) = match_length(&repetition.sub);
            let most = longest.zip(repetition.max);
            (
                shortest.saturating_mul(repetition.min),
                most.and_then(|(longest, max)| longest.checked_mul(max)),
            )
        }
        HirKind::Capture(capture) => match_length(&capture.sub),
        HirKind::Concat(parts) => parts.iter().map(match_length).fold(
            (0, Some(0_u32)),
            |(shortest, longest), (least, most)| {
                let both = longest.zip(most);
                (
                    shortest.saturating_add(least),
                    both.and_then(|(longest, most)| longest.checked_add(most)),
                )
            },
        ),
        HirKind::Alternation(ways) => {
            let lengths: Vec<_> = ways.iter().map(match_length).collect();
            let shortest = lengths.iter().map(|(shortest, _)| *shortest).min();
            let longest: Option<Vec<_>> = lengths.iter().map(|(_, longest)| *longest).collect();
            (
                shortest.unwrap_or(0),
                longest.and_then(|all| all.into_iter().max()),
            )
        }
    }
}

fn is_look(hir: &Hir, look: Look) -> bool {
    matches!(hir.kind(), HirKind::Look(found) if *found == look)
}

/// Writes a match with any text around it, but where it is anchored.
fn write_search(hir: &Hir, out: &mut String) -> Result<(), String> {
    match hir.kind() {
        // Texts have no anchors.
        HirKind::Alternation(ways) if !ways.iter().all(is_text) => {
            check_count(ways)?;
            out.push('(');
            for (at, way) in ways.iter().enumerate() {
                if at > 0 {
                    out.push_str(" | ");
                }
                write_search(way, out)?;
            }
            out.push(')');
            Ok(())
        }
        HirKind::Capture(capture) => write_search(&capture.sub, out),
        HirKind::Concat(parts) => write_found(parts, out),
        _ => write_found(slice::from_ref(hir), out),
    }
}

fn write_found(parts: &[Hir], out: &mut String) -> Result<(), String> {
    let starts = parts.iter().take_while(|part| is_look(part, Look::Start));
    let rest = parts.get(starts.count()..).unwrap_or_default();
    let from_end = rest.iter().rev();
    let ends = from_end.take_while(|part| is_look(part, Look::End));
    let middle = &rest[..rest.len() - ends.count()];
    if rest.len() == parts.len() {
        append(out, format_args!("{CHARACTER}* "));
    }
    for part in middle {
        write_expression(part, false, false, true, out)?;
        out.push(' ');
    }
    if middle.len() == rest.len() {
        append(out, format_args!("{CHARACTER}*"));
    } else {
        out.push_str("\"\"");
    }
    Ok(())
}

/// Has `\w`, `\d` and `\s` mean ASCII: in all scripts, they have hundreds of ranges, and `\d` usually means a digit from 0 to 9.
fn narrow_classes(tree: &mut Ast) {
    match tree {
        Ast::ClassPerl(class) => {
            let narrowed = ClassBracketed {
                span: class.span,
                negated: false,
                kind: ClassSet::Item(ClassSetItem::Ascii(ascii_class(class))),
            };
            *tree = Ast::ClassBracketed(Box::new(narrowed));
        }
        Ast::ClassBracketed(class) => narrow_set(&mut class.kind),
        Ast::Repetition(repetition) => narrow_classes(&mut repetition.ast),
        Ast::Group(group) => narrow_classes(&mut group.ast),
        Ast::Alternation(alternation) => alternation.asts.iter_mut().for_each(narrow_classes),
        Ast::Concat(concat) => concat.asts.iter_mut().for_each(narrow_classes),
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
        ClassSetItem::Perl(class) => *item = ClassSetItem::Ascii(ascii_class(class)),
        ClassSetItem::Bracketed(class) => narrow_set(&mut class.kind),
        ClassSetItem::Union(union) => union.items.iter_mut().for_each(narrow_item),
        _ => {}
    }
}

fn ascii_class(class: &ClassPerl) -> ClassAscii {
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
pub(crate) fn gbnf_literal(text: &str) -> String {
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

/// `begins`, `ends`: whether it is at the start or at the end of the text, where an anchor says nothing. `json`: the text
/// is within a JSON string.
fn write_expression(
    hir: &Hir,
    begins: bool,
    ends: bool,
    json: bool,
    out: &mut String,
) -> Result<(), String> {
    match hir.kind() {
        HirKind::Empty => out.push_str("\"\""),
        HirKind::Literal(literal) => out.push_str(&gbnf_literal(&text_of(literal, json)?)),
        HirKind::Class(Class::Unicode(class)) if json => write_json_class(class, out)?,
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
            write_expression(&repetition.sub, false, false, json, out)?;
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
            write_expression(&capture.sub, begins, ends, json, out)?;
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
                write_expression(part, begins && at <= first, ends && at >= last, json, out)?;
            }
        }
        HirKind::Alternation(parts) => {
            if let Some(texts) = texts_of(parts, json) {
                append(out, format_args!("({})", texts_grammar(texts)));
                return Ok(());
            }
            check_count(parts)?;
            out.push('(');
            for (at, part) in parts.iter().enumerate() {
                if at > 0 {
                    out.push_str(" | ");
                }
                write_expression(part, begins, ends, json, out)?;
            }
            out.push(')');
        }
    }
    Ok(())
}

fn is_text(hir: &Hir) -> bool {
    matches!(hir.kind(), HirKind::Literal(_))
}

/// `json`: as it is written within a JSON string.
fn text_of(literal: &Literal, json: bool) -> Result<String, String> {
    let text = str::from_utf8(&literal.0).map_err(|_| "it has bytes that are not text")?;
    if !json {
        return Ok(text.to_owned());
    }
    let text = Value::from(text).to_string();
    Ok(text[1..text.len() - 1].to_owned())
}

/// The texts of alternatives; `None` if one is no text.
fn texts_of(alternatives: &[Hir], json: bool) -> Option<Vec<String>> {
    let texts = alternatives.iter().map(|one| match one.kind() {
        HirKind::Literal(literal) => text_of(literal, json).ok(),
        _ => None,
    });
    texts.collect()
}

fn check_count(alternatives: &[Hir]) -> Result<(), String> {
    let count = alternatives.len();
    if count > MOST_ALTERNATIVES {
        return Err(format!(
            "it has {count} alternatives, and the limit is {MOST_ALTERNATIVES} where not all are plain texts"
        ));
    }
    Ok(())
}

/// What JSON escapes is a way of its own.
fn write_json_class(class: &ClassUnicode, out: &mut String) -> Result<(), String> {
    const ESCAPED: [(char, &str); 5] = [
        ('"', "\\\""),
        ('\\', "\\\\"),
        ('\n', "\\n"),
        ('\r', "\\r"),
        ('\t', "\\t"),
    ];
    let has = |wanted: char| {
        let mut ranges = class.iter();
        ranges.any(|range| (range.start()..=range.end()).contains(&wanted))
    };
    let escaped = ESCAPED.into_iter().filter(|(character, _)| has(*character));
    let mut ways: Vec<_> = escaped.map(|(_, escape)| gbnf_literal(escape)).collect();
    let special = [('\0', '\x1F'), ('"', '"'), ('\\', '\\')];
    let special = special.map(|(start, end)| ClassUnicodeRange::new(start, end));
    let mut plain = class.clone();
    plain.difference(&ClassUnicode::new(special));
    if ways.is_empty() || !plain.ranges().is_empty() {
        let mut way = String::new();
        write_class(&plain, &mut way)?;
        ways.insert(0, way);
    }
    append(out, format_args!("({})", ways.join(" | ")));
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
                pattern_grammar(pattern).as_deref(),
                Ok(&*format!("root ::= {expected}")),
                "{pattern}"
            );
        }
    }

    #[test]
    fn a_pattern_is_found_in_a_json_string() {
        let quote = "\"\\\"\"";
        for (pattern, expected) in [
            ("^[0-9]{3}$", r#"(([0-9])){3,3} """#.to_owned()),
            ("[0-9]", format!("{CHARACTER}* ([0-9]) {CHARACTER}*")),
            ("^a|b$", format!(r#"("a" {CHARACTER}* | {CHARACTER}* "b" "")"#)),
            ("^a\"$", r#""a\\\"" """#.to_owned()),
            (r"^[^a]$", r#"([\x20-\x21\x23-\x5B\x5D-\x60b-\U0010FFFF] | "\\\"" | "\\\\" | "\\n" | "\\r" | "\\t") """#.to_owned()),
        ] {
            let found = json_string_grammar(pattern, 0, None);
            assert_eq!(found, Ok(format!("{quote} {expected} {quote}")), "{pattern}");
        }
        for pattern in ["(?=a)b", "(", "(^a)b", r"\bsea\b"] {
            assert!(json_string_grammar(pattern, 0, None).is_err(), "{pattern}");
        }
    }

    #[test]
    fn a_pattern_and_lengths_hold_together() {
        let limited = json_string_grammar("^[a-z]+$", 3, Some(5)).unwrap();
        assert!(limited.contains("{3,5}"), "{limited}");
        for (pattern, fewest, most, holds) in [
            ("^[a-z]+$", 0, Some(0), false),
            ("^ab?c$", 2, Some(3), true),
            ("^ab?c$", 3, None, false),
            ("^(ab|cde)$", 2, Some(3), true),
            ("abc", 3, None, true),
            ("abc", 0, Some(9), false),
        ] {
            let limited = json_string_grammar(pattern, fewest, most);
            assert_eq!(limited.is_ok(), holds, "{pattern}: {limited:?}");
        }
    }

    #[test]
    fn a_long_text_is_counted_in_parts() {
        let text = json_text_grammar(3, 5000);
        for part in ["{3,1999} | ", "{2000} (", "{0,1999} | ", "{0,1000})"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!json_text_grammar(2000, 2001).contains("1999"));
    }

    #[test]
    fn many_alternatives_share_their_beginnings() {
        let words: Vec<_> = (0..300).map(|n| format!("hat{n:03}")).collect();
        let words = words.join("|");
        let shared = r#"("hat" ("0" ("0" ("0" | "1" | "2""#;
        let begin = format!("root ::= {shared}");
        let grammar = pattern_grammar(&words).unwrap();
        assert!(grammar.starts_with(&begin), "{grammar}");
        for (pattern, before) in [
            (format!("^({words})$"), "("),
            (words.clone(), &*format!("{CHARACTER}* ")),
        ] {
            let grammar = json_string_grammar(&pattern, 0, None).unwrap();
            assert!(grammar.contains(&format!("{before}{shared}")), "{grammar}");
        }
        for pattern in [
            words.replace('|', "+|"),
            format!("^{}$", words.replace('|', "$|^")),
        ] {
            let refused = json_string_grammar(&pattern, 0, None).unwrap_err();
            assert!(
                refused.starts_with("it has 300 alternatives, "),
                "{refused}"
            );
        }
    }

    #[test]
    fn a_class_of_many_ranges_is_whole() {
        let letters = "[aceàâæçéèêëîïôœùûüÿāēīōūăĕĭŏŭąęįų]";
        for pattern in [letters, r"\p{Latin}"] {
            let grammar = pattern_grammar(pattern).unwrap();
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
            assert!(pattern_grammar(pattern).is_err(), "{pattern}");
        }
        let deep = format!("{}a{}", "(".repeat(100), ")".repeat(100));
        assert!(pattern_grammar(&deep).is_err());
    }
}

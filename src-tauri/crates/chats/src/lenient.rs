//! The JSON in an answer that may have other text around it or be cut off.

use crate::thinking::without_thoughts;
use serde_json::{Map, Value};
use tierbar_core::json;

/// The most objects to try: an answer of only braces would be parsed once for each.
const TRIED: usize = 64;

/// Returns the first complete JSON object of the answer: bare, in a code fence, or after other text. An answer that would take too
/// much memory has none.
pub fn object(answer: &str) -> Option<Map<String, Value>> {
    let answer = without_thoughts(answer);
    json::check(answer.as_bytes(), 1, json::MOST_MEMORY).ok()?;
    let starts = answer.match_indices('{').take(TRIED);
    starts.map(|(at, _)| &answer[at..]).find_map(|rest| {
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        match values.next() {
            Some(Ok(Value::Object(object))) => Some(object),
            _ => None,
        }
    })
}

/// Returns the text of a field whose string or object is cut off, as far as it goes.
pub fn unfinished(answer: &str, field: &str) -> Option<String> {
    let answer = without_thoughts(answer);
    let (_, rest) = answer.split_once(&format!("\"{field}\""))?;
    let rest = rest.trim_start().strip_prefix(':')?;
    let rest = rest.trim_start().strip_prefix('"')?;
    let mut end = rest.len();
    let mut escaped = false;
    for (at, byte) in rest.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => {
                end = at;
                break;
            }
            _ => {}
        }
    }
    let mut text = &rest[..end];
    // An escape may have been cut through, and a character of two escapes as well.
    for _ in 0..16 {
        if let Ok(read) = serde_json::from_str(&format!("\"{text}\"")) {
            return Some(read);
        }
        text = text.get(..text.rfind('\\')?)?;
    }
    None
}

/// Returns the text in a field of an object, or the bare answer of an engine without schemas; and whether it was cut to its
/// last whole sentence because the answer was cut off. A text without a letter or digit is none.
pub fn text(answer: &str, field: &str, was_cut: bool) -> Option<(String, bool)> {
    let whole = object(answer).and_then(|object| Some(object.get(field)?.as_str()?.to_owned()));
    let (text, cut) = match whole {
        Some(text) => (text, false),
        None if was_cut && answer.contains('{') => (unfinished(answer, field)?, true),
        None if answer.contains('{') => return None,
        None => (without_thoughts(answer).to_owned(), was_cut),
    };
    let text = if cut {
        up_to_a_sentence(&text)
    } else {
        text.trim()
    };
    let has_words = text.chars().any(char::is_alphanumeric);
    has_words.then(|| (text.to_owned(), cut))
}

/// Returns a truncated text up to the end of its last whole sentence, or else of its last whole word.
pub fn up_to_a_sentence(text: &str) -> &str {
    let text = text.trim_end();
    let ends = text
        .char_indices()
        .filter(|(_, c)| matches!(c, '.' | '!' | '?' | '…' | '。' | '！' | '？'));
    let sentence = ends.map(|(at, c)| at + c.len_utf8()).rfind(|&end| {
        // `3.5` and `example.com` end no sentence.
        text[end..].starts_with(char::is_whitespace) || end == text.len()
    });
    let end = sentence.or_else(|| text.rfind(char::is_whitespace));
    text[..end.unwrap_or(text.len())].trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_object_is_found_within_other_text() {
        for answer in [
            r#"{"text": "a}b"}"#,
            "```json\n{\"text\": \"a}b\"}\n```\nI hope that helps {not}",
            "Sure! For {this} message: {\"text\": \"a}b\"}",
            "<think>{\"text\": \"no\"}</think>\n{\"text\": \"a}b\"}",
        ] {
            let found = object(answer).unwrap();
            assert_eq!(Value::Object(found), json!({"text": "a}b"}), "{answer}");
        }
        for none in [
            "",
            "no",
            "[1]",
            "{\"text\": \"a",
            "<think>{\"text\": \"not yet\"}",
            &"{".repeat(100_000),
            "{'text': 'a'}",
        ] {
            assert_eq!(object(none), None);
        }
    }

    #[test]
    fn truncated_json_is_read_as_far_as_it_goes() {
        let read = |answer| unfinished(answer, "text");
        assert_eq!(read(r#"{"text": "One. Tw"#).unwrap(), "One. Tw");
        assert_eq!(read(r#"{"text":"a \"b\" c"#).unwrap(), "a \"b\" c");
        assert_eq!(read(r#"{"text":"done", "more"#).unwrap(), "done");
        assert_eq!(read(r#"{"text":"cut \"#).unwrap(), "cut ");
        assert_eq!(read(r#"{"text":"cut \u00"#).unwrap(), "cut ");
        assert_eq!(read(r#"{"text":"cut \ud83d\ude"#).unwrap(), "cut ");
        assert_eq!(read(r#"{"other":"a"#), None);
        assert_eq!(read(r#"{"text": 7"#), None);
    }

    #[test]
    fn a_text_is_read_from_whole_partial_or_no_json() {
        let some = |text: &str, cut| Some((text.to_owned(), cut));
        assert_eq!(text("{\"text\": \" a \"}", "text", true), some("a", false));
        assert_eq!(
            text("{\"text\": \"One. Tw", "text", true),
            some("One.", true)
        );
        assert_eq!(text("One. Two", "text", false), some("One. Two", false));
        assert_eq!(text("a <think>", "text", false), some("a <think>", false));
        assert_eq!(text("One. Tw", "text", true), some("One.", true));
        for none in [
            "",
            "{\"text\": \"\"}",
            "{\"text\": \"…\"}",
            "- ",
            "{\"text\": 7}",
            "{\"text\": \"One. Tw",
            "<think>x</think> ",
            "<think>x",
        ] {
            assert_eq!(text(none, "text", false), None, "{none}");
        }
    }

    #[test]
    fn a_truncated_text_ends_at_a_sentence_or_word() {
        for (text, left) in [
            ("One. Two. Thr", "One. Two."),
            ("It costs 3.5 mill", "It costs 3.5"),
            ("One two thr", "One two"),
            ("One", "One"),
            ("One. ", "One."),
            ("", ""),
        ] {
            assert_eq!(up_to_a_sentence(text), left);
        }
    }
}

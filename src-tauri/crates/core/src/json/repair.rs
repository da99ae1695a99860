//! JSON that is none because of a letter: each bad byte, and each half of a letter that has lost its other half, becomes `�`, so that the
//! text around it arrives.

use super::{COPIES, MOST_MEMORY, check};
use memchr::memmem;
use serde::de::DeserializeOwned;
use std::{borrow::Cow, ops::Range};

const BYTE_ORDER_MARK: &str = "\u{feff}";

/// Parses an event, an answer or a message, if need be without the letters that are none.
///
/// # Errors
/// If it is not the JSON that is expected, or takes more than [`MOST_MEMORY`].
pub fn parse<T: DeserializeOwned>(data: &[u8]) -> Result<T, serde_json::Error> {
    check(data, COPIES, MOST_MEMORY)?;
    serde_json::from_slice(data).or_else(|error| match repair(data) {
        Some(repaired) if !error.is_eof() => serde_json::from_str(&repaired),
        _ => Err(error),
    })
}

/// Returns the JSON with whole letters only, and without a byte-order mark before it; `None` if it is so already, of which nothing is
/// copied.
pub fn repair(json: &[u8]) -> Option<String> {
    if has_whole_letters(json) && !json.starts_with(BYTE_ORDER_MARK.as_bytes()) {
        return None;
    }
    let text = String::from_utf8_lossy(json);
    let plain = text.trim_start_matches(BYTE_ORDER_MARK);
    let has_mark = plain.len() < text.len();
    let mut repaired: Option<String> = None;
    // Up to here it is repaired.
    let (mut done, mut at) = (0, 0);
    while let Some(found) = plain[at..].find('\\') {
        let begin = at + found;
        let escape = &plain[begin..];
        let length = escape_length(escape.as_bytes());
        // An escape that is none may be cut off within a letter.
        let length = (length..=escape.len())
            .find(|end| escape.is_char_boundary(*end))
            .unwrap_or(escape.len());
        at = begin + length;
        if length == 6 && matches!(unit(escape.as_bytes()), Some(0xD800..=0xDFFF)) {
            let repaired = repaired.get_or_insert_default();
            repaired.push_str(&plain[done..begin]);
            repaired.push('\u{FFFD}');
            done = at;
        }
    }
    match repaired {
        Some(repaired) => Some(repaired + &plain[done..]),
        None if has_mark => Some(plain.to_owned()),
        None => match text {
            Cow::Owned(text) => Some(text),
            Cow::Borrowed(_) => None,
        },
    }
}

/// Returns where a letter begins that the end of a text cuts off.
pub fn cut_letter(json: &[u8]) -> Option<Range<usize>> {
    if has_whole_letters(json) {
        return None;
    }
    let mut at = 0;
    while let Some(&byte) = json.get(at) {
        let rest = &json[at..];
        let length = match byte {
            b'\\' => escape_length(rest),
            0x80.. => letter_length(rest),
            _ => 1,
        };
        let is_half = match byte {
            b'\\' => length == 6 && matches!(unit(rest), Some(0xD800..=0xDBFF)),
            0xC2..=0xF4 => {
                let part = &rest[..length.min(rest.len())];
                std::str::from_utf8(part).is_err_and(|error| error.error_len().is_none())
            }
            _ => false,
        };
        if is_half && rest.get(length) == Some(&b'"') {
            return Some(at..at + length);
        }
        at += length;
    }
    None
}

/// Moves the rest of a letter that an event cuts off from the next event, if that begins a text with it.
pub fn join(event: &mut Vec<u8>, next: &mut Vec<u8>) {
    let Some(cut) = cut_letter(event) else { return };
    let half = &event[cut.clone()];
    let completes = |at: usize| {
        let rest = next.get(at..).unwrap_or_default();
        if half[0] == b'\\' {
            return matches!(unit(rest), Some(0xDC00..=0xDFFF)).then_some(6);
        }
        (1..=3).find(|more| {
            let more = rest.get(..*more).unwrap_or_default();
            std::str::from_utf8(&[half, more].concat()).is_ok_and(|text| text.chars().count() == 1)
        })
    };
    let quotes = next.iter().enumerate().filter(|(_, byte)| **byte == b'"');
    let found = quotes
        .map(|(quote, _)| quote + 1)
        .find_map(|at| Some((at, completes(at)?)));
    if let Some((at, length)) = found {
        let rest: Vec<u8> = next.drain(at..at + length).collect();
        drop(event.splice(cut.end..cut.end, rest));
    }
}

/// Whether there are neither bad bytes nor escapes that could be half a letter, as in nearly every event: what is slower is done for the
/// others.
fn has_whole_letters(json: &[u8]) -> bool {
    let has = |half: &[u8]| memmem::find(json, half).is_some();
    std::str::from_utf8(json).is_ok() && !has(b"\\ud") && !has(b"\\uD")
}

/// How many bytes an escape has, which may be a pair of halves.
fn escape_length(escape: &[u8]) -> usize {
    match (unit(escape), escape.get(6..).and_then(unit)) {
        (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => 12,
        (Some(_), _) => 6,
        (None, _) => 2,
    }
}

/// How many bytes of a letter are there.
fn letter_length(letter: &[u8]) -> usize {
    let whole = match letter[0] {
        0xC2..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xF4 => 4,
        _ => 1,
    };
    let rest = letter.iter().skip(1).take(whole - 1);
    1 + rest.take_while(|byte| matches!(byte, 0x80..=0xBF)).count()
}

/// Returns the code unit that an escape begins with, such as `\u00fc`.
fn unit(escape: &[u8]) -> Option<u16> {
    let digits = escape.strip_prefix(b"\\u")?.get(..4)?;
    let digits = std::str::from_utf8(digits).ok()?;
    let are_digits = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    are_digits.then(|| u16::from_str_radix(digits, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repaired(json: &[u8]) -> String {
        repair(json).unwrap()
    }

    #[test]
    fn what_is_no_letter_is_replaced_and_the_rest_is_kept() {
        assert_eq!(repaired(br#"{"t":"\ud83d x"}"#), r#"{"t":"� x"}"#);
        assert_eq!(repaired(br#"{"t":"x \ude00"}"#), r#"{"t":"x �"}"#);
        assert_eq!(repaired(b"{\"t\":\"x\xff\"}"), r#"{"t":"x�"}"#);
        assert_eq!(repaired(b"\xef\xbb\xbf{}"), "{}");
        for whole in [r#"{"t":"\\ud83d \ud83d\ude00 \u00fc"}"#, "{\"t\":\"\\ü"] {
            assert_eq!(repair(whole.as_bytes()), None, "{whole}");
        }
        // Cut off within an escape.
        for cut in ["\"\\", "\"\\u12", "\"\\ud83d\\"] {
            let _text = repair(cut.as_bytes());
        }
    }

    #[test]
    fn halves_of_a_letter_are_joined() {
        let event = |text: &[u8]| [b"{\"a\":\"b\",\"t\":\"", text, b"\"}"].concat();
        let joined = |one: &[u8], two: &[u8]| {
            let (mut one, mut two) = (event(one), event(two));
            join(&mut one, &mut two);
            (one, two)
        };
        for (one, two, whole, rest) in [
            (
                &br"a\ud83d"[..],
                &br"\ude00 b"[..],
                &br"a\ud83d\ude00"[..],
                &b" b"[..],
            ),
            (b"a\xf0\x9f", b"\x98\x80b", "a😀".as_bytes(), b"b"),
            (b"a\xc3", b"\xbc", "aü".as_bytes(), b""),
            // What does not belong together stays.
            (br"a\ud83d", b"b", br"a\ud83d", b"b"),
            (br"a\\ud83d", br"\ude00", br"a\\ud83d", br"\ude00"),
            (b"a\xf0\x9f", b"\x98", b"a\xf0\x9f", b"\x98"),
            (b"a", br"\ude00", b"a", br"\ude00"),
        ] {
            assert_eq!(joined(one, two), (event(whole), event(rest)));
        }
        assert_eq!(cut_letter(&event(br"\ud83d\ude00\ud83d")), Some(26..32));
        assert_eq!(cut_letter(&event(br"\ud83d\ude00")), None);
        assert_eq!(cut_letter(&event("ü".as_bytes())), None);
    }
}

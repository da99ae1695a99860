//! Events that are no JSON because of a letter: each bad byte, and each half of a letter that has lost its other half, becomes `�`, so
//! that the text around it arrives.

use serde::de::DeserializeOwned;

/// Parses an event, if need be without the letters that are none.
///
/// # Errors
/// If it is no JSON, or not of this form.
pub(super) fn parse<T: DeserializeOwned>(
    repair: &mut Repair,
    data: &[u8],
) -> Result<T, serde_json::Error> {
    serde_json::from_slice(data).or_else(|error| match repair.repair(data) {
        Some(repaired) if !error.is_eof() => serde_json::from_str(&repaired),
        _ => Err(error),
    })
}

/// The first half of a letter that a server has cut in two, until the second comes with the next event.
#[derive(Debug, Default)]
pub(super) struct Repair {
    half: Option<u16>,
}

impl Repair {
    /// Returns the data with whole letters only; `None` if it has no other.
    pub(super) fn repair(&mut self, data: &[u8]) -> Option<String> {
        let text = String::from_utf8_lossy(data);
        let mut changed = matches!(text, std::borrow::Cow::Owned(_));
        let mut repaired = String::with_capacity(text.len());
        let mut rest = &*text;
        while let Some(at) = rest.find('\\') {
            let (before, escape) = rest.split_at(at);
            repaired.push_str(before);
            let Some(unit) = unit(escape) else {
                // Any other escape is of two bytes, of which the second may be no letter of its own.
                let length = escape.chars().take(2).map(char::len_utf8).sum();
                repaired.push_str(&escape[..length]);
                rest = &escape[length..];
                continue;
            };
            let after = &escape[6..];
            match (unit, self::unit(after)) {
                (0xD800..=0xDBFF, Some(0xDC00..=0xDFFF)) => {
                    repaired.push_str(&escape[..12]);
                    rest = &escape[12..];
                    continue;
                }
                (0xD800..=0xDBFF, _) => {
                    changed = true;
                    match after.starts_with('"') {
                        true => self.half = Some(unit),
                        false => repaired.push('\u{FFFD}'),
                    }
                }
                (0xDC00..=0xDFFF, _) => {
                    changed = true;
                    let half = self.half.take().filter(|_| repaired.ends_with('"'));
                    let letter =
                        half.and_then(|half| char::decode_utf16([half, unit]).next()?.ok());
                    repaired.push(letter.unwrap_or('\u{FFFD}'));
                }
                _ => repaired.push_str(&escape[..6]),
            }
            rest = after;
        }
        repaired.push_str(rest);
        changed.then_some(repaired)
    }
}

/// Returns the code unit that an escape begins with, such as `\u00fc`.
fn unit(escape: &str) -> Option<u16> {
    let digits = escape.strip_prefix("\\u")?.get(..4)?;
    let are_digits = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    are_digits.then(|| u16::from_str_radix(digits, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn repaired(events: &[&[u8]]) -> Vec<String> {
        let mut repair = Repair::default();
        let read = |event: &&[u8]| {
            let text = repair.repair(event).unwrap();
            let event: Value = serde_json::from_str(&text).unwrap();
            event["t"].as_str().unwrap().to_owned()
        };
        events.iter().map(read).collect()
    }

    #[test]
    fn halves_of_a_letter_are_joined_or_replaced() {
        let halves: [&[u8]; 2] = [br#"{"t":"a\ud83d"}"#, br#"{"t":"\ude00 b"}"#];
        assert_eq!(repaired(&halves), ["a", "😀 b"]);
        assert_eq!(repaired(&[br#"{"t":"\ud83d x"}"#]), ["� x"]);
        assert_eq!(repaired(&[br#"{"t":"x \ude00"}"#]), ["x �"]);
        assert_eq!(repaired(&[b"{\"t\":\"x\xff\"}"]), ["x�"]);
        let whole = br#"{"t":"\\ud83d \ud83d\ude00 \u00fc"}"#;
        assert_eq!(Repair::default().repair(whole), None);
        assert_eq!(Repair::default().repair("{\"t\":\"\\ü".as_bytes()), None);
    }
}

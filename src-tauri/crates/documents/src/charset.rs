//! Bytes as text: by the declared character encoding, or else by a guess that is reported (WHATWG, Encoding).

use crate::markup::html::{Piece, Pieces};
use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

/// A declaration stands in so many bytes at the start.
const HEAD: usize = 4096;

/// A text, and whether its letters may be wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoded {
    /// With U+FFFD where bytes are no letter.
    pub text: String,
    /// Why letters may be wrong, in a sentence.
    pub doubt: Option<String>,
}

/// Returns bytes as text; `None` for bytes that are no text. `declared`: the name of an encoding, if one is declared outside the text.
#[must_use]
pub fn decode(bytes: &[u8], declared: Option<&str>, is_html: bool) -> Option<Decoded> {
    let sure = |text: String| Some(Decoded { text, doubt: None });
    let read_as = |encoding: &'static Encoding, bytes| {
        let (text, is_damaged) = encoding.decode_without_bom_handling(bytes);
        (text.into_owned(), is_damaged)
    };
    if let Some((encoding, mark)) = Encoding::for_bom(bytes) {
        return sure(read_as(encoding, &bytes[mark..]).0);
    }
    let declared = match declared {
        Some(name) => known(name),
        None => declared_in(bytes, is_html),
    };
    if let Some(encoding) = declared {
        let (text, is_damaged) = read_as(encoding, bytes);
        // Bytes that another encoding explains without a loss are in that one.
        let fits = !is_damaged || (encoding != UTF_8 && std::str::from_utf8(bytes).is_err());
        if fits && !text.contains('\0') {
            return sure(text);
        }
    }
    if bytes.contains(&0) {
        return None;
    }
    if is_utf8(bytes) {
        return sure(String::from_utf8_lossy(bytes).into_owned());
    }
    let controls = bytes
        .iter()
        .filter(|&&byte| byte < 9 || (14..27).contains(&byte));
    if controls.count() * 50 > bytes.len() {
        return None;
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
    detector.feed(bytes, true);
    let guessed = detector.guess(None, Utf8Detection::Deny);
    let (text, _) = read_as(guessed, bytes);
    let name = guessed.name();
    let doubt = match declared {
        Some(declared) => format!(
            "Its text is not in the character encoding that it declares, {}, and was read as {name}: letters may be wrong.",
            declared.name()
        ),
        None => format!(
            "Its character encoding is not declared and was guessed as {name}: letters may be wrong."
        ),
    };
    Some(Decoded {
        text,
        doubt: Some(doubt),
    })
}

/// Returns whether a declared name is one of an encoding that is read here.
pub(crate) fn is_known(name: &str) -> bool {
    Encoding::for_label_no_replacement(name.trim().as_bytes()).is_some()
}

/// Returns the encoding of a declared name; `None` for ASCII, too, since bytes beyond it contradict it.
fn known(name: &str) -> Option<&'static Encoding> {
    let name = name.trim().trim_matches(['"', '\'']);
    // Python's names have hyphens elsewhere.
    let plain = || name.replace(['-', '_'], "");
    let found = Encoding::for_label_no_replacement(name.as_bytes())
        .or_else(|| Encoding::for_label_no_replacement(plain().as_bytes()))?;
    let is_ascii = found == WINDOWS_1252 && name.to_ascii_lowercase().contains("ascii");
    (!is_ascii).then_some(found)
}

/// Returns whether these bytes are UTF-8, maybe with a few that are damaged or with a last letter that is cut off.
fn is_utf8(bytes: &[u8]) -> bool {
    let Err(error) = std::str::from_utf8(bytes) else {
        // ISO-2022-JP has no byte beyond ASCII.
        return !(bytes.is_ascii() && bytes.windows(2).any(|two| two == b"\x1b$"));
    };
    if error.error_len().is_none() {
        return true;
    }
    let (mut letters, mut damaged) = (0_usize, 0_usize);
    for chunk in bytes.utf8_chunks() {
        letters += chunk
            .valid()
            .chars()
            .filter(|letter| !letter.is_ascii())
            .count();
        damaged += usize::from(!chunk.invalid().is_empty());
    }
    letters > damaged
}

/// Returns the encoding that a text declares in itself: in its XML declaration, as editors and Python do in the first two lines, or, if it
/// is HTML, in a `meta` element.
fn declared_in(bytes: &[u8], is_html: bool) -> Option<&'static Encoding> {
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(HEAD)]);
    let name =
        declared_at_the_top(&head).or_else(|| is_html.then(|| declared_in_meta(&head))?)?;
    let found = known(&name)?;
    // A declaration that can be read is not in two bytes a letter.
    let is_wide = [UTF_16LE, UTF_16BE].contains(&found);
    Some(if is_wide { UTF_8 } else { found })
}

fn declared_at_the_top(head: &str) -> Option<String> {
    let top = match head.trim_start().strip_prefix("<?xml") {
        Some(rest) => rest.split_once("?>")?.0.to_owned(),
        None => head.lines().take(2).collect::<Vec<_>>().join("\n"),
    };
    named_behind(&top, "coding")
}

fn declared_in_meta(head: &str) -> Option<String> {
    Pieces::new(head).find_map(|piece| match piece {
        Piece::Start(tag) if tag.name == "meta" => {
            let whole = tag.attribute("charset").map(str::to_owned);
            whole.or_else(|| declared_by(tag.attribute("content")?))
        }
        _ => None,
    })
}

/// Returns the name of an encoding in a media type such as `text/html; charset=utf-8`.
#[must_use]
pub fn declared_by(media_type: &str) -> Option<String> {
    named_behind(media_type, "charset")
}

/// Returns the name behind a word such as `charset` and a sign, if it is one of an encoding.
fn named_behind(text: &str, word: &str) -> Option<String> {
    text.to_ascii_lowercase()
        .match_indices(word)
        .find_map(|(at, _)| {
            let rest = text[at + word.len()..].trim_start();
            let rest = rest.strip_prefix(['=', ':'])?;
            let rest = rest.trim_start().trim_start_matches(['"', '\'']);
            let is_part = |letter: char| letter.is_ascii_alphanumeric() || "-_.:".contains(letter);
            let end = rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
            let name = &rest[..end];
            Encoding::for_label(name.as_bytes()).or_else(|| known(name))?;
            Some(name.to_owned())
        })
}

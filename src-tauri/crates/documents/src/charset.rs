//! Bytes as text: by the declared character encoding, or else by a guess that is reported (WHATWG, Encoding).

use crate::markup::html::{Piece, Pieces};
use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

/// A declaration stands in so many bytes at the start.
const HEAD: usize = 4096;

/// A text, and whether its letters may be wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodedText {
    /// With U+FFFD where bytes are no letter.
    pub text: String,
    /// Why letters may be wrong, in a sentence.
    pub doubt: Option<String>,
}

/// The bytes of a text: their encoding, and whether the mark that names it (BOM) comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextForm {
    encoding: &'static Encoding,
    has_mark: bool,
}

impl TextForm {
    pub fn utf_8(has_mark: bool) -> Self {
        Self {
            encoding: UTF_8,
            has_mark,
        }
    }

    /// Returns the encoding's name, such as `windows-1252`.
    pub fn name(self) -> &'static str {
        self.encoding.name()
    }

    /// Returns a text's bytes; `None` if the encoding lacks one of its letters.
    pub fn encode(self, text: &str) -> Option<Vec<u8>> {
        let mark = if self.has_mark { "\u{feff}" } else { "" };
        let units = || mark.encode_utf16().chain(text.encode_utf16());
        if self.encoding == UTF_16LE {
            return Some(units().flat_map(u16::to_le_bytes).collect());
        }
        if self.encoding == UTF_16BE {
            return Some(units().flat_map(u16::to_be_bytes).collect());
        }
        let (bytes, _, lacks_a_letter) = self.encoding.encode(text);
        (!lacks_a_letter).then(|| [mark.as_bytes(), &bytes].concat())
    }
}

/// Returns bytes as text; `None` for bytes that are no text. `declared`: the name of an encoding, if one is declared outside the text.
pub fn decode(bytes: &[u8], declared: Option<&str>, is_html: bool) -> Option<DecodedText> {
    decode_with_form(bytes, declared, is_html).map(|(decoded, _)| decoded)
}

/// Returns what [`decode`] does, with the form in which the text can be written back.
pub fn decode_with_form(
    bytes: &[u8],
    declared: Option<&str>,
    is_html: bool,
) -> Option<(DecodedText, TextForm)> {
    let decoded = |text: String, doubt, encoding, has_mark| {
        let form = TextForm { encoding, has_mark };
        Some((DecodedText { text, doubt }, form))
    };
    let read_as = |encoding: &'static Encoding, bytes| {
        let (text, is_damaged) = encoding.decode_without_bom_handling(bytes);
        (text.into_owned(), is_damaged)
    };
    if let Some((encoding, mark)) = Encoding::for_bom(bytes) {
        return decoded(read_as(encoding, &bytes[mark..]).0, None, encoding, true);
    }
    let declared = match declared {
        Some(name) => known_encoding(name),
        None => declared_in(bytes, is_html),
    };
    if let Some(encoding) = declared {
        let (text, is_damaged) = read_as(encoding, bytes);
        // Bytes that another encoding explains without a loss are in that one, and those that this one hardly explains are not in it.
        let fits = !is_damaged
            || (encoding != UTF_8 && std::str::from_utf8(bytes).is_err() && !is_mostly_lost(&text));
        if fits && !text.contains('\0') {
            return decoded(text, None, encoding, false);
        }
    }
    if bytes.contains(&0) {
        return None;
    }
    if is_utf8(bytes) {
        let text = String::from_utf8_lossy(bytes).into_owned();
        return decoded(text, None, UTF_8, false);
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
    decoded(text, Some(doubt), guessed, false)
}

fn is_mostly_lost(text: &str) -> bool {
    let beyond_ascii = text.chars().filter(|letter| !letter.is_ascii()).count();
    text.matches(char::REPLACEMENT_CHARACTER).count() * 2 > beyond_ascii
}

/// Returns whether a declared name is one of an encoding that is read here.
pub(crate) fn is_known(name: &str) -> bool {
    Encoding::for_label_no_replacement(name.trim().as_bytes()).is_some()
}

/// Returns the encoding of a declared name; `None` for ASCII, too, since bytes beyond it contradict it.
fn known_encoding(name: &str) -> Option<&'static Encoding> {
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
        // One byte beyond ASCII at the end is a letter of another encoding.
        let (before, cut) = bytes.split_at(error.valid_up_to());
        return cut.len() > 1 || !before.is_ascii();
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
    let found = known_encoding(&name)?;
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
            Encoding::for_label(name.as_bytes()).or_else(|| known_encoding(name))?;
            Some(name.to_owned())
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(bytes: &[u8], is_html: bool) -> (String, Option<String>) {
        let decoded = decode(bytes, None, is_html).unwrap();
        (decoded.text, decoded.doubt)
    }

    fn encoded(text: &str, name: &str) -> Vec<u8> {
        let encoding = Encoding::for_label(name.as_bytes()).unwrap();
        let (bytes, _, is_lossy) = encoding.encode(text);
        assert!(!is_lossy, "{text} in {name}");
        bytes.into_owned()
    }

    #[test]
    fn marks_and_utf_8_need_no_guess() {
        for bytes in [
            "żółw".as_bytes(),
            b"\xef\xbb\xbf\xc5\xbc\xc3\xb3\xc5\x82w",
            b"\xff\xfe\x7c\x01\xf3\0\x42\x01w\0",
            b"\xfe\xff\x01\x7c\0\xf3\x01\x42\0w",
        ] {
            assert_eq!(read(bytes, false), ("żółw".to_owned(), None));
        }
        assert_eq!(decode(b"a\0b", None, false), None);
        assert_eq!(decode(b"\x01\x02\x03\x04\xff", None, false), None);
        // Colors of a terminal are no Japanese.
        assert_eq!(read(b"\x1b[1mbold\x1b(B", false).1, None);
    }

    #[test]
    fn bad_bytes_in_utf_8_cost_their_letters_alone() {
        let mut bytes = "Grüße aus München\n".repeat(5).into_bytes();
        bytes.push(0xff);
        let (text, doubt) = read(&bytes, false);
        assert_eq!((text.matches("Grüße").count(), doubt), (5, None));
        assert_eq!(text.matches('\u{fffd}').count(), 1);
        // The last letter is cut off.
        assert_eq!(read(b"ab\xe2\x82", false), ("ab\u{fffd}".to_owned(), None));
    }

    #[test]
    fn an_undeclared_encoding_is_guessed_and_reported() {
        for (text, name) in [
            ("会议纪要由王小明主持，预算已批准。", "GBK"),
            ("議事録。東京支社の予算。", "Shift_JIS"),
            ("議事録。東京支社の予算。", "ISO-2022-JP"),
            ("Бюджет утверждён на совещании.", "windows-1251"),
            // It has all of KOI8-R's letters.
            ("Бюджет утверждён на совещании.", "KOI8-U"),
            ("회의록과 예산안이 승인되었다.", "EUC-KR"),
            ("café – bar", "windows-1252"),
        ] {
            let (read, doubt) = read(&encoded(text, name), false);
            assert_eq!(read, text);
            assert!(doubt.unwrap().contains(&format!("guessed as {name}")));
        }
    }

    #[test]
    fn a_declared_encoding_is_used() {
        let text = "預算 東京支社の予算";
        for declaration in [
            "<html><meta charset=shift_jis>",
            "<!-- <meta charset=utf-8> --><META HTTP-EQUIV='Content-Type' CONTENT='text/html; Charset=\"Shift_JIS\"'>",
            "<?xml version='1.0' encoding='x-sjis'?><html>",
        ] {
            let page = format!("{declaration}<p>{text}");
            let bytes = encoded(&page, "shift_jis");
            assert_eq!(read(&bytes, true), (page, None));
        }
        let code = "#!/usr/bin/env python\n# -*- coding: latin-1 -*-\nname = 'Jürgen'";
        assert_eq!(
            read(&encoded(code, "latin1"), false),
            (code.to_owned(), None)
        );
        let wide = "<meta charset=utf-16><p>für";
        assert_eq!(read(wide.as_bytes(), true), (wide.to_owned(), None));
        let declared = decode(&encoded(text, "euc-jp"), Some("EUC-JP"), false);
        assert_eq!(declared.map(|read| read.text).as_deref(), Some(text));
        assert_eq!(
            declared_by("text/html; charset=\"koi8-r\"").as_deref(),
            Some("koi8-r")
        );
        assert_eq!(declared_by("text/html; charset=nonsense"), None);
    }

    #[test]
    fn a_wrong_declaration_is_reported() {
        let bytes = encoded("für die Straße, größer als je zuvor", "windows-1252");
        let decoded = decode(&bytes, Some("utf-8"), false).unwrap();
        assert!(decoded.text.starts_with("für die Straße"));
        assert!(decoded.doubt.unwrap().contains("that it declares, UTF-8"));
        let bytes = encoded("議事録。東京支社の予算。", "euc-jp");
        let decoded = decode(&bytes, Some("iso-2022-jp"), false).unwrap();
        assert_eq!(decoded.text, "議事録。東京支社の予算。");
        assert!(decoded.doubt.is_some());
        // ASCII has no such letters, and UTF-8 has them all.
        let decoded = decode("für".as_bytes(), Some("us-ascii"), false).unwrap();
        assert_eq!((decoded.text.as_str(), decoded.doubt), ("für", None));
        let decoded = decode("für 预算".as_bytes(), Some("shift_jis"), false).unwrap();
        assert_eq!(decoded.text, "für 预算");
    }

    #[test]
    fn a_text_is_written_back_in_its_form() {
        for bytes in [
            "żółw\r\n".as_bytes(),
            b"\xef\xbb\xbf\xc5\xbc",
            b"\xff\xfe\x7c\x01\xf3\0",
            b"\xfe\xff\x01\x7c\0\xf3",
            &encoded("für die Straße, größer als je zuvor", "windows-1252"),
            &encoded("議事録。東京支社の予算。", "Shift_JIS"),
        ] {
            let (decoded, form) = decode_with_form(bytes, None, false).unwrap();
            let written = form.encode(&decoded.text).unwrap();
            assert_eq!(written, bytes, "{}", form.name());
        }
        let bytes = encoded("für die Straße, größer als je zuvor", "windows-1252");
        let (_, latin) = decode_with_form(&bytes, None, false).unwrap();
        assert_eq!((latin.name(), latin.encode("ż")), ("windows-1252", None));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..60), is_html in any::<bool>()) {
            if let Some(decoded) = decode(&bytes, None, is_html) {
                prop_assert!(decoded.text.len() <= 4 * bytes.len());
            }
        }
    }
}

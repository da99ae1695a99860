//! Bytes as text.

/// What Windows-1252 has where Latin-1 has control characters.
const WINDOWS: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}',
    '\u{90}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];

/// Returns the text of UTF-8, of UTF-16 with its mark, or else of Windows-1252; `None` for bytes that are no text.
pub(crate) fn decode(bytes: &[u8]) -> Option<String> {
    if let Some(rest) = bytes.strip_prefix(b"\xff\xfe") {
        return Some(utf16(rest, u16::from_le_bytes));
    }
    if let Some(rest) = bytes.strip_prefix(b"\xfe\xff") {
        return Some(utf16(rest, u16::from_be_bytes));
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    if bytes.contains(&0) {
        return None;
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Some(text.to_owned()),
        // The last letter is cut off.
        Err(error) if error.error_len().is_none() => {
            Some(String::from_utf8_lossy(&bytes[..error.valid_up_to()]).into_owned())
        }
        Err(_) => {
            let controls = bytes
                .iter()
                .filter(|&&byte| byte < 9 || (14..27).contains(&byte));
            (controls.count() * 50 <= bytes.len()).then(|| windows_1252(bytes))
        }
    }
}

pub(crate) fn windows_1252(bytes: &[u8]) -> String {
    bytes.iter().map(|&byte| windows_letter(byte)).collect()
}

pub(crate) fn windows_letter(byte: u8) -> char {
    match byte {
        0x80..=0x9f => WINDOWS[usize::from(byte - 0x80)],
        _ => char::from(byte),
    }
}

pub(crate) fn utf16(bytes: &[u8], of: fn([u8; 2]) -> u16) -> String {
    let units = bytes.chunks_exact(2).map(|pair| of([pair[0], pair[1]]));
    char::decode_utf16(units)
        .map(|letter| letter.unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect()
}

/// Returns the text with each run of spaces as one, and none at its ends.
pub(crate) fn squeeze(text: &str) -> String {
    let mut squeezed = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !squeezed.is_empty() {
            squeezed.push(' ');
        }
        squeezed.push_str(word);
    }
    squeezed
}

/// Returns the first `length` bytes, or fewer so that no letter is cut.
pub(crate) fn head(text: &str, length: usize) -> &str {
    &text[..text.floor_char_boundary(length)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_several_encodings_is_read() {
        assert_eq!(decode("żółw".as_bytes()).as_deref(), Some("żółw"));
        assert_eq!(decode(b"caf\xe9 \x96 bar").as_deref(), Some("café – bar"));
        assert_eq!(decode(b"\xff\xfeh\0i\0").as_deref(), Some("hi"));
        assert_eq!(decode(b"\xfe\xff\0h\0i").as_deref(), Some("hi"));
        assert_eq!(decode(b"a\0b"), None);
        assert_eq!(decode(b"\x01\x02\x03\x04\xff"), None);
        assert_eq!(
            decode("ab€".as_bytes().split_last().unwrap().1).as_deref(),
            Some("ab")
        );
    }
}

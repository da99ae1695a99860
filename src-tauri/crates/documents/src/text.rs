//! Letters, and what is done with words.

/// What Windows-1252 has where Latin-1 has control characters.
const WINDOWS: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}',
    '\u{90}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];

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

//! Letters, and what is done with words.

use encoding_rs::WINDOWS_1252;

pub(crate) fn windows_1252(bytes: &[u8]) -> String {
    let (text, _) = WINDOWS_1252.decode_without_bom_handling(bytes);
    text.into_owned()
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

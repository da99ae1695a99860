//! Letters, and what is done with words.

/// Returns the text with each run of spaces as one, and none at its ends.
pub(crate) fn squeeze(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

pub(crate) fn one_line(text: &str, most: usize) -> String {
    head(&squeeze(text), most).to_owned()
}

/// Returns the first `length` bytes, or fewer so that no letter is cut.
pub(crate) fn head(text: &str, length: usize) -> &str {
    &text[..text.floor_char_boundary(length)]
}

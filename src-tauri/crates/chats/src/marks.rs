//! Marks in a text that comes in parts, such as tags and stop sequences.

/// Length of the longest end of `text` with which `mark` begins, without the whole of it.
pub fn overlap(text: &str, mark: &str) -> usize {
    (1..mark.len().min(text.len() + 1))
        .rev()
        .find(|&length| mark.is_char_boundary(length) && text.ends_with(&mark[..length]))
        .unwrap_or(0)
}

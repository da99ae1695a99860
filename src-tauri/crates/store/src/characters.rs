//! Chinese, Japanese and Korean in the search: their words have no spaces between them, so each character is indexed as a word, and a
//! word that is searched is a sequence of them.

use rusqlite::{Connection, params};
use std::borrow::Cow;

/// Ends a word in the index; it is never shown.
const BETWEEN: char = '\u{200B}';

/// Whether the character belongs to a script without spaces between words, or to one whose words end in particles, as Korean's do.
pub(crate) fn is_by_itself(letter: char) -> bool {
    let is_in_script = matches!(letter,
        '\u{1100}'..='\u{11FF}' | '\u{2E80}'..='\u{9FFF}' | '\u{A960}'..='\u{A97F}' | '\u{AC00}'..='\u{D7FF}'
        | '\u{F900}'..='\u{FAFF}' | '\u{FF66}'..='\u{FFDC}' | '\u{20000}'..='\u{3FFFF}');
    is_in_script && letter.is_alphanumeric()
}

/// Returns the text with each such character as a word of its own; as it is, if it has none.
pub(crate) fn separate(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_by_itself) {
        return Cow::Borrowed(text);
    }
    let mut apart = String::with_capacity(text.len() * 2);
    let mut is_after_one = false;
    for letter in text.chars() {
        let is_one = is_by_itself(letter);
        if (is_one || is_after_one) && !apart.is_empty() {
            apart.push(BETWEEN);
        }
        apart.push(letter);
        is_after_one = is_one;
    }
    Cow::Owned(apart)
}

/// Returns a text of the index as it was.
pub(crate) fn rejoin(text: &str) -> String {
    text.replace(BETWEEN, "")
}

/// Adds a message to the index, if its text has such characters. The database removes it with the message.
pub(crate) fn index(connection: &Connection, id: u64, text: &str) -> rusqlite::Result<()> {
    if let Cow::Owned(text) = separate(text) {
        connection
            .prepare_cached("INSERT INTO message_characters (rowid, text) VALUES (?1, ?2)")?
            .execute(params![id, text])?;
    }
    Ok(())
}

/// Indexes the messages that an older version stored; the migration has noted which.
pub(crate) fn index_earlier(connection: &Connection) -> rusqlite::Result<()> {
    let mut select = connection.prepare(
        "SELECT id, text FROM message_texts WHERE text <> '' AND id IN (SELECT id FROM messages_to_index)",
    )?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let text: String = row.get(1)?;
        index(connection, row.get(0)?, &text)?;
    }
    connection.execute("DELETE FROM messages_to_index", [])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_character_without_spaces_becomes_a_word() {
        for (text, words) in [
            ("東京tower、2026年", "東|京|tower、2026|年"),
            ("あ、い", "あ|、|い"),
            ("한국어 배우기", "한|국|어| |배|우|기"),
            ("Zürich", "Zürich"),
            ("", ""),
        ] {
            let apart = separate(text);
            assert_eq!(apart.replace(BETWEEN, "|"), words);
            assert_eq!(rejoin(&apart), text);
        }
    }
}

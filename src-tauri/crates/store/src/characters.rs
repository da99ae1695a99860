//! Scripts without spaces between words in the search: each letter is indexed as a word, and a word that is searched is a sequence of
//! them. Korean has spaces, and words that end in particles.

use crate::sql::{self, Outcome};
use rusqlite::{Connection, params};
use std::borrow::Cow;

/// Ends a word in the index; it is never shown.
pub(crate) const BETWEEN: char = '\u{200B}';

/// Returns how many letters of the letter's script stand for a word; `None` for a letter of a script with spaces.
pub(crate) fn word_length(letter: char) -> Option<usize> {
    match letter {
        // Chinese, Japanese, Korean.
        '\u{1100}'..='\u{11FF}'
        | '\u{2E80}'..='\u{9FFF}'
        | '\u{A960}'..='\u{A97F}'
        | '\u{AC00}'..='\u{D7FF}'
        | '\u{F900}'..='\u{FAFF}'
        | '\u{FF66}'..='\u{FFDC}'
        | '\u{20000}'..='\u{3FFFF}' => letter.is_alphanumeric().then_some(2),
        // Thai, Lao, Burmese, Khmer: without the vowels and tones above and below, which the tokenizer drops.
        '\u{0E01}'..='\u{0E30}'
        | '\u{0E32}'..='\u{0E33}'
        | '\u{0E40}'..='\u{0E46}'
        | '\u{0E81}'..='\u{0EB0}'
        | '\u{0EB2}'..='\u{0EB3}'
        | '\u{0EC0}'..='\u{0EC6}'
        | '\u{1000}'..='\u{102A}'
        | '\u{1780}'..='\u{17B3}' => Some(3),
        _ => None,
    }
}

pub(crate) fn is_by_itself(letter: char) -> bool {
    word_length(letter).is_some()
}

/// Whether this stands above, below or behind a letter of such a script, and is no letter itself.
pub(crate) fn is_mark(letter: char) -> bool {
    matches!(letter, '\u{0E31}' | '\u{0E34}'..='\u{0E3A}' | '\u{0E47}'..='\u{0E4E}'
        | '\u{0EB1}' | '\u{0EB4}'..='\u{0EBC}' | '\u{0EC8}'..='\u{0ECE}'
        | '\u{102B}'..='\u{103E}' | '\u{17B4}'..='\u{17D3}')
}

/// Returns the parts of a word, each of letters of one kind, without marks.
pub(crate) fn runs(word: &str) -> Vec<String> {
    let (mut runs, mut last) = (Vec::<String>::new(), None);
    for letter in word.chars().filter(|letter| !is_mark(*letter)) {
        let kind = word_length(letter);
        match runs.last_mut() {
            Some(run) if last == Some(kind) => run.push(letter),
            _ => runs.push(letter.to_string()),
        }
        last = Some(kind);
    }
    runs
}

/// Returns the sequences of so many letters; the whole, if it is shorter.
pub(crate) fn grams(run: &str, length: usize) -> Vec<String> {
    let letters: Vec<char> = run.chars().collect();
    if letters.len() <= length {
        return vec![run.to_owned()];
    }
    letters.windows(length).map(String::from_iter).collect()
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

pub(crate) fn rejoin(text: &str) -> String {
    text.replace(BETWEEN, "")
}

/// An index of letters. The database removes from it what is removed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Index {
    table: &'static str,
    /// What an older version stored: a table of ids, from a migration, and the ids with their texts.
    earlier: &'static str,
    texts: &'static str,
}

pub(crate) const MESSAGES: Index = Index {
    table: "message_characters",
    earlier: "messages_to_index",
    texts: "SELECT id, text FROM message_texts WHERE text <> ''",
};
pub(crate) const PASSAGES: Index = Index {
    table: "passage_characters",
    earlier: "passages_to_index",
    texts: "SELECT id, headings || char(10) || text FROM document_passages WHERE true",
};

impl Index {
    /// Adds texts under an id, if they have such letters.
    pub(crate) fn index(self, connection: &Connection, id: u64, texts: &[&str]) -> Outcome<()> {
        let has_some = texts.iter().any(|text| text.chars().any(is_by_itself));
        if has_some {
            let apart: Vec<_> = texts.iter().map(|text| separate(text)).collect();
            let insert = format!("INSERT INTO {} (rowid, text) VALUES (?1, ?2)", self.table);
            sql::run(connection, &insert, params![id, apart.join("\n")])?;
        }
        Ok(())
    }

    pub(crate) fn index_earlier(self, connection: &Connection) -> Outcome<()> {
        let Self { texts, earlier, .. } = self;
        let select = format!("{texts} AND id IN (SELECT id FROM {earlier})");
        let found: Vec<(u64, String)> = sql::all(connection, &select, [], |row| row.try_into())?;
        for (id, text) in found {
            self.index(connection, id, &[&text])?;
        }
        sql::run(connection, &format!("DELETE FROM {earlier}"), [])?;
        Ok(())
    }
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
            ("ต้นไม้ a", "ต|้|น|ไ|ม|้ a"),
            ("Zürich", "Zürich"),
            ("", ""),
        ] {
            let apart = separate(text);
            assert_eq!(apart.replace(BETWEEN, "|"), words);
            assert_eq!(rejoin(&apart), text);
        }
    }
}

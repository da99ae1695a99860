//! The search in titles and messages.

use crate::{
    Store, characters, chats,
    sql::{self, Outcome},
};
use rusqlite::Connection;
use std::collections::HashMap;
use tierbar_chats::{ChatSummary, SearchMatch};
use tierbar_core::Error;

const MAX_FOUND: u32 = 100;
/// The newest message of each chat that has the words; without one, the chat's title has them. The index of the titles knows no words of
/// Chinese, Japanese and Korean: `?3` are the patterns that such a title has, if any.
const HITS: &str = "WITH hits AS (
        SELECT chat_id AS chat, messages.id AS message FROM message_words JOIN messages ON messages.id = message_words.rowid
        WHERE message_words MATCH ?1
        UNION ALL SELECT chat_id, messages.id FROM message_characters JOIN messages ON messages.id = message_characters.rowid
        WHERE message_characters MATCH ?1
        UNION ALL SELECT chat, NULL FROM title_words WHERE title_words MATCH ?1
        UNION ALL SELECT id, NULL FROM chats WHERE ?3 <> '[]'
        AND NOT EXISTS (SELECT 1 FROM json_each(?3) WHERE title NOT LIKE value ESCAPE '!')
    )
    SELECT chat, max(message) FROM hits JOIN chats ON chats.id = chat WHERE deleted_at IS NULL
    GROUP BY chat ORDER BY updated_at DESC LIMIT ?2";
/// Sixteen words around the first hit of some messages. One pass over the hits: looking each message up would make SQLite find all
/// hits of a word's beginning again and again, hence the plus, which keeps it from that.
const EXCERPTS: &str = "SELECT rowid, snippet(message_words, 0, '', '', '…', 16) FROM message_words
    WHERE message_words MATCH ?1 AND +rowid IN (SELECT value FROM json_each(?2))";
/// The same, forty characters long, of messages whose characters are words.
const CHARACTER_EXCERPTS: &str =
    "SELECT rowid, snippet(message_characters, 0, '', '', '…', 40) FROM message_characters
    WHERE message_characters MATCH ?1 AND +rowid IN (SELECT value FROM json_each(?2))";

impl Store {
    /// Returns the chats whose title or one of whose messages has all these words, the last of which may be the beginning of one; the
    /// last changed first, at most 100. Case and accents do not count. Words of Chinese, Japanese and Korean are found anywhere. None for
    /// a text without words.
    pub async fn search_chats(&self, words: &str) -> Result<Vec<ChatSummary>, Error> {
        let Some(query) = query(words) else {
            return Ok(Vec::new());
        };
        let patterns = title_patterns(words);
        self.read(move |connection| search(connection, &query, &patterns))
            .await
    }
}

fn search(connection: &Connection, query: &str, title_patterns: &str) -> Outcome<Vec<ChatSummary>> {
    let words = (query, MAX_FOUND, title_patterns);
    let hits: Vec<(String, Option<u64>)> = sql::all(connection, HITS, words, |row| row.try_into())?;
    let messages: Vec<_> = hits.iter().filter_map(|(_, message)| *message).collect();
    let messages = format!("{messages:?}");
    let mut excerpts: HashMap<u64, String> = HashMap::new();
    for select in [EXCERPTS, CHARACTER_EXCERPTS] {
        let found: Vec<(u64, String)> =
            sql::all(connection, select, (query, &messages), |row| row.try_into())?;
        let rejoined = found
            .into_iter()
            .map(|(message, excerpt)| (message, characters::rejoin(&excerpt)));
        excerpts.extend(rejoined);
    }
    let mut found = Vec::new();
    for (chat, message) in hits {
        if let Some(mut chat) = chats::find(connection, &chat)? {
            let excerpt = message.and_then(|message| excerpts.remove(&message));
            chat.found = Some(SearchMatch {
                message,
                excerpt: excerpt.unwrap_or_default(),
            });
            found.push(chat);
        }
    }
    Ok(found)
}

/// Words as a query of SQLite's full-text search: each in quotes, so that nothing in them is an operator.
fn query(words: &str) -> Option<String> {
    let words: Vec<_> = split(words)
        .map(|word| format!("\"{}\"", characters::separate(word).replace('"', "\"\"")))
        .collect();
    (!words.is_empty()).then(|| format!("{} *", words.join(" ")))
}

/// The patterns for `LIKE` that a title has, as a JSON array; none for words that the index of the titles knows.
fn title_patterns(words: &str) -> String {
    if !words.chars().any(characters::is_by_itself) {
        return "[]".to_owned();
    }
    let patterns = split(words).map(|word| {
        let word = word.replace('!', "!!").replace('%', "!%");
        format!("%{}%", word.replace('_', "!_"))
    });
    serde_json::Value::from_iter(patterns).to_string()
}

fn split(words: &str) -> impl Iterator<Item = &str> {
    let words = words.split(|letter: char| letter.is_whitespace() || letter.is_control());
    // A word without letters and digits matches nothing, and with it the others would neither.
    words.filter(|word| word.chars().any(char::is_alphanumeric))
}

#[cfg(test)]
mod tests {
    use super::{query, title_patterns};

    #[test]
    fn any_text_becomes_a_search_query() {
        for (words, expected) in [
            ("paris", Some("\"paris\" *")),
            ("  the  Capital\n", Some("\"the\" \"Capital\" *")),
            ("a OR b* NEAR(c)", Some("\"a\" \"OR\" \"b*\" \"NEAR(c)\" *")),
            ("say \"hi\" ?", Some("\"say\" \"\"\"hi\"\"\" *")),
            ("a\0b", Some("\"a\" \"b\" *")),
            ("東京 x", Some("\"東\u{200B}京\" \"x\" *")),
            (" ?! \"", None),
            ("", None),
        ] {
            assert_eq!(query(words).as_deref(), expected, "{words:?}");
        }
    }

    #[test]
    fn titles_are_compared_with_words_of_characters_alone() {
        assert_eq!(title_patterns("tokyo 50%"), "[]");
        assert_eq!(
            title_patterns("東京! 50% a_b"),
            r#"["%東京!!%","%50!%%","%a!_b%"]"#
        );
    }
}

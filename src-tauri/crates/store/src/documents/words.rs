//! How passages are found by their words (BM25): a question's rarest words, since ranking what most passages have would take seconds and
//! change nothing.

use super::Place;
use crate::{
    Store, characters,
    sql::{self, Json, Outcome},
};
use rusqlite::{Connection, params};
use std::collections::HashSet;
use tierbar_core::Error;

/// More words than that are no question.
const MOST_WORDS: usize = 64;
/// So many passages are ranked. Where there are no more, each word of a question counts.
const CANDIDATES: u64 = 20_000;
/// The best score (lower is better) of a passage that only shares words with the question that most passages have.
const COMMON: f64 = -1e-4;

#[derive(Debug, Clone, Copy)]
struct Index {
    table: &'static str,
    weights: &'static str,
}

const WORDS: Index = Index {
    table: "passage_words",
    weights: "1.5, 1.0",
};
const CHARACTERS: Index = Index {
    table: "passage_characters",
    weights: "1.0",
};

impl Store {
    /// Returns the passages that have some of these words, those that match best first. A word of a script without spaces is found by
    /// the letters that follow one another in it.
    pub async fn passages_with_words(
        &self,
        words: &str,
        place: Place,
        limit: usize,
    ) -> Result<Vec<u64>, Error> {
        let (words, letters) = terms(words);
        self.read(move |connection| {
            let search = |index, terms: &[String]| {
                ranked(connection, index, terms, &place, limit, CANDIDATES)
            };
            if letters.is_empty() {
                return search(WORDS, &words);
            }
            let mut found = search(CHARACTERS, &[letters, words.clone()].concat())?;
            let others = search(WORDS, &words)?;
            let known: HashSet<u64> = found.iter().copied().collect();
            found.extend(others.into_iter().filter(|id| !known.contains(id)));
            found.truncate(limit);
            Ok(found)
        })
        .await
    }
}

/// Returns the passages of an index that have some of these terms, the best first. `most`: how many of them are ranked.
fn ranked(
    connection: &Connection,
    index: Index,
    terms: &[String],
    place: &Place,
    limit: usize,
    most: u64,
) -> Outcome<Vec<u64>> {
    let (terms, last) = rarest(connection, index, terms, most)?;
    if terms.is_empty() {
        return Ok(Vec::new());
    }
    let Index { table, weights } = index;
    let terms = terms.join(" OR ");
    let query = format!(
        "SELECT rowid, bm25({table}, {weights}) AS score FROM {table}
         WHERE {table} MATCH ?1 AND rowid <= ?2 AND (?6 OR EXISTS (
             SELECT 1 FROM document_passages
             JOIN document_files ON document_files.id = file AND document_files.version = document_passages.version
             JOIN document_sources ON document_sources.id = source
             WHERE document_passages.id = {table}.rowid AND NOT is_removed AND (?3 IS NULL OR collection = ?3) AND (?4 IS NULL OR file = ?4)
         )) ORDER BY score LIMIT ?5"
    );
    let search = |any: bool| -> Outcome<Vec<(u64, f64)>> {
        let Place { collection, file } = place;
        sql::all(
            connection,
            &query,
            params![terms, last, collection, file, limit, any],
            |row| row.try_into(),
        )
    };
    let any = place.collection.is_none() && place.file.is_none();
    let mut found = search(any)?;
    if any && has_hidden(connection, &found)? {
        found = search(false)?;
    }
    let has_rare_words = found.iter().any(|(_, score)| *score < COMMON);
    let matches = found
        .iter()
        .filter(|(_, score)| !has_rare_words || *score < COMMON);
    Ok(matches.map(|(id, _)| *id).collect())
}

/// Whether some of these passages are of a version or a source that is not shown. Each candidate is looked at only if so.
fn has_hidden(connection: &Connection, found: &[(u64, f64)]) -> Outcome<bool> {
    let ids: Vec<u64> = found.iter().map(|(id, _)| *id).collect();
    sql::one(
        connection,
        "SELECT EXISTS (
             SELECT 1 FROM document_passages JOIN document_files ON document_files.id = file
             JOIN document_sources ON document_sources.id = source
             WHERE document_passages.id IN (SELECT value FROM json_each(?1))
                 AND (is_removed OR document_files.version <> document_passages.version)
         )",
        [Json(ids)],
        |row| row.get(0),
    )
}

/// Returns the terms that the fewest passages have, as many as make no more candidates than `most`, and the last passage that counts: if
/// even the rarest term makes more, its first ones are ranked.
fn rarest(
    connection: &Connection,
    index: Index,
    terms: &[String],
    most: u64,
) -> Outcome<(Vec<String>, i64)> {
    let table = index.table;
    let count = format!(
        "SELECT count(*), max(rowid) FROM (SELECT rowid FROM {table} WHERE {table} MATCH ?1 ORDER BY rowid LIMIT ?2)"
    );
    let mut counted = Vec::new();
    for term in terms {
        let found: (u64, Option<i64>) =
            sql::one(connection, &count, params![term, most + 1], |row| {
                row.try_into()
            })?;
        if let (passages, Some(last)) = found {
            counted.push((passages, last, term));
        }
    }
    counted.sort_by_key(|(passages, ..)| *passages);
    let (mut rarest, mut candidates, mut end) = (Vec::new(), 0, i64::MAX);
    for (passages, last, term) in counted {
        candidates += passages;
        if candidates > most {
            if rarest.is_empty() {
                rarest.push(term.clone());
                end = last;
            }
            break;
        }
        rarest.push(term.clone());
    }
    Ok((rarest, end))
}

/// The terms of a question for SQLite's full-text search, each in quotes, so that nothing in them is an operator: its words, and what
/// stands for words in scripts without spaces.
fn terms(question: &str) -> (Vec<String>, Vec<String>) {
    let (mut words, mut letters) = (Vec::new(), Vec::new());
    let parts = question.split(|letter: char| {
        !letter.is_alphanumeric() && letter != '_' && !characters::is_mark(letter)
    });
    for part in parts.filter(|part| part.chars().any(char::is_alphanumeric)) {
        for run in characters::runs(part) {
            let (terms, grams) = match run.chars().next().and_then(characters::word_length) {
                None => (&mut words, vec![run]),
                Some(length) => (&mut letters, characters::grams(&run, length)),
            };
            let grams = grams.iter().map(|gram| characters::separate(gram));
            terms.extend(grams.map(|gram| format!("\"{gram}\"")));
        }
    }
    for terms in [&mut words, &mut letters] {
        let mut seen = HashSet::new();
        terms.retain(|term: &String| seen.insert(term.to_lowercase()));
        terms.truncate(MOST_WORDS);
    }
    (words, letters)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::Database;

    #[test]
    fn any_question_becomes_search_terms() {
        for (question, words, letters) in [
            ("What is it?", "\"What\" \"is\" \"it\"", ""),
            ("What is what", "\"What\" \"is\"", ""),
            ("a\" NEAR(b) -c*", "\"a\" \"NEAR\" \"b\" \"c\"", ""),
            ("東京towerは", "\"tower\"", "\"東|京\" \"は\""),
            ("電池を交換", "", "\"電|池\" \"池|を\" \"を|交\" \"交|換\""),
            ("ต้นไม้", "", "\"ต|น|ไ\" \"น|ไ|ม\""),
            (" ?! ", "", ""),
        ] {
            let (found, grams) = terms(question);
            assert_eq!(found.join(" "), words, "{question}");
            let grams = grams.join(" ").replace(characters::BETWEEN, "|");
            assert_eq!(grams, letters, "{question}");
        }
    }

    #[test]
    fn common_words_are_not_ranked_beside_rare_ones() {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::open(&folder.path().join("tierbar.db")).unwrap();
        let add = |change: &rusqlite::Transaction, id: i64, text: &str| {
            sql::run(
                change,
                "INSERT INTO passage_words (rowid, headings, text) VALUES (?1, '', ?2)",
                params![id, text],
            )
        };
        database
            .write(|change| {
                for id in 1..=30 {
                    let owl = if id % 10 == 0 { "owls" } else { "" };
                    add(change, id, &format!("the barn of {owl}"))?;
                }
                Ok(())
            })
            .unwrap();
        let question = ["\"the\"", "\"barn\"", "\"owl\"", "\"gone\""].map(str::to_owned);
        let found = |terms: &[String], most| {
            let mut found = database
                .read(|at| ranked(at, WORDS, terms, &Place::default(), 99, most))
                .unwrap();
            found.sort_unstable();
            found
        };
        let rarest = |most| {
            database
                .read(|at| rarest(at, WORDS, &question, most))
                .unwrap()
        };
        assert_eq!(rarest(90).0, ["\"owl\"", "\"the\"", "\"barn\""]);
        assert_eq!(rarest(20).0, ["\"owl\""]);
        assert_eq!(found(&question, 20), [10, 20, 30]);
        // Of a word that all have, the first.
        assert_eq!(found(&question[..1], 20), (1..=21).collect::<Vec<_>>());
        assert_eq!(found(&question[3..], 20), [0; 0]);
    }
}

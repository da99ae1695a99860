//! The passages, and how they are found by their vectors, all of which a search compares.
//!
//! Ten thousand vectors of 384 numbers are 4 MB as they are packed, and are compared in the time of reading them; an index of
//! neighbors, or an extension of SQLite, would have to be kept as well and would answer no sooner.

use super::{NewDocument, no_file};
use crate::{
    Store, characters,
    sql::{self, Json, Outcome},
};
use rusqlite::{Connection, Row, params};
use std::collections::HashMap;
use tierbar_core::{
    Code, Error,
    documents::{Passage, vectors},
};

/// The most passages of all documents: about a gigabyte of text, whose vectors a search reads in a second.
pub(super) const MOST: u64 = 1_000_000;
/// What a passage takes in memory besides its text: its document's title, path and collection.
const AROUND_A_PASSAGE: u64 = 1 << 10;
/// Passages before and behind one, for its reader.
const AROUND: u64 = 8;

/// What a passage has that the one before it has not.
const OWN_TEXT: &str = "substr(CAST(text AS BLOB), fresh + 1)";

/// Where to search.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    pub collection: Option<String>,
    /// One document, by its id.
    pub file: Option<u64>,
}

/// A passage that an embedder has not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    pub id: u64,
    pub file: u64,
    pub title: String,
    pub headings: Vec<String>,
    pub text: String,
}

impl Store {
    /// Returns the passages whose vectors of this model are the most alike to one of length 1, with their similarity, the best first.
    /// Those of a document that this model has not read to its end are left out: it would be searched in part as if it were whole.
    pub async fn passages_like(
        &self,
        model: &str,
        vector: Vec<f32>,
        place: Place,
        limit: usize,
    ) -> Result<Vec<(u64, f32)>, Error> {
        let model = model.to_owned();
        self.read(move |connection| similar_passages(connection, &model, &vector, &place, limit))
            .await
    }

    /// Returns these passages in this order, those that are still there.
    pub async fn passages(&self, ids: Vec<u64>) -> Result<Vec<Passage>, Error> {
        let of_ids = "WHERE document_passages.id IN (SELECT value FROM json_each(?1))";
        let select = format!("{} {of_ids}", select("text"));
        self.read(move |connection| {
            let mut found: HashMap<u64, Passage> =
                sql::all(connection, &select, [Json(&ids)], |row| {
                    passage(row).map(|passage| (passage.id, passage))
                })?;
            Ok(ids.iter().filter_map(|id| found.remove(id)).collect())
        })
        .await
    }

    /// Returns a passage with those before and behind it in its document, in their order. Their texts do not repeat one another, but
    /// for the passage's own, which is whole.
    ///
    /// # Errors
    /// [`Code::NotFound`], also once its document has changed.
    pub async fn passages_around(&self, id: u64) -> Result<Vec<Passage>, Error> {
        let own = format!(
            "CASE document_passages.id WHEN ?1 THEN CAST(text AS BLOB) ELSE {OWN_TEXT} END"
        );
        let around = format!(
            "{} WHERE file = (SELECT file FROM document_passages WHERE id = ?1)
                 AND place BETWEEN (SELECT place FROM document_passages WHERE id = ?1) - ?2
                 AND (SELECT place FROM document_passages WHERE id = ?1) + ?2 ORDER BY place",
            select(&own)
        );
        self.read(move |connection| {
            let around: Vec<_> = sql::all(connection, &around, [id, AROUND], passage)?;
            if around.is_empty() {
                let message = format!("there is no passage {id}");
                let error = Error::new(Code::NotFound, message);
                let hint = "its document has changed or was removed; search again";
                return Err(error.hint(hint).into());
            }
            Ok(around)
        })
        .await
    }

    /// Returns the text of a document, passage by passage, without what they repeat.
    pub async fn document_text(&self, file: u64) -> Result<Vec<Passage>, Error> {
        let all = format!("{} WHERE file = ?1 ORDER BY place", select(OWN_TEXT));
        self.read(move |connection| {
            let passages: Vec<_> = sql::all(connection, &all, [file], passage)?;
            if passages.is_empty() {
                return Err(no_file(file).into());
            }
            Ok(passages)
        })
        .await
    }

    /// Returns about the memory that [`Self::document_text`] takes.
    pub async fn document_size(&self, file: u64) -> Result<u64, Error> {
        self.read(move |connection| {
            sql::one(
                connection,
                "SELECT coalesce(sum(octet_length(text) + octet_length(headings) + ?2), 0)
                 FROM document_passages WHERE file = ?1",
                [file, AROUND_A_PASSAGE],
                |row| row.get(0),
            )
        })
        .await
    }

    /// Returns passages of one document that this model has not read, in their order.
    pub async fn passages_without_vectors(
        &self,
        model: &str,
        limit: usize,
    ) -> Result<Vec<Unread>, Error> {
        let model = model.to_owned();
        self.read(move |connection| {
            sql::all(
                connection,
                "SELECT document_passages.id, document_passages.file, coalesce(title, ''), headings, text FROM document_passages
                 JOIN document_files ON document_files.id = document_passages.file
                 LEFT JOIN document_vectors ON passage = document_passages.id AND model = ?1
                 WHERE passage IS NULL AND document_passages.file = (
                    SELECT all_passages.file FROM document_passages AS all_passages
                    LEFT JOIN document_vectors AS all_vectors
                    ON all_vectors.passage = all_passages.id AND all_vectors.model = ?1
                    WHERE all_vectors.passage IS NULL ORDER BY all_passages.id LIMIT 1
                 ) ORDER BY document_passages.id LIMIT ?2",
                params![model, limit],
                |row| {
                    Ok(Unread {
                        id: row.get(0)?,
                        file: row.get(1)?,
                        title: row.get(2)?,
                        headings: row.get::<_, Json<_>>(3)?.0,
                        text: row.get(4)?,
                    })
                },
            )
        })
        .await
    }

    /// Stores vectors of passages, in place of another model's. A passage that is gone meanwhile is left out.
    pub async fn put_passage_vectors(
        &self,
        model: &str,
        vectors: Vec<(u64, Vec<u8>)>,
    ) -> Result<(), Error> {
        let model = model.to_owned();
        self.write(move |change| {
            let insert = "INSERT OR REPLACE INTO document_vectors (passage, file, model, vector)
                          SELECT id, file, ?2, ?3 FROM document_passages WHERE id = ?1";
            for (passage, vector) in &vectors {
                sql::run(change, insert, params![passage, model, vector])?;
            }
            Ok(())
        })
        .await
    }
}

/// Whether so many passages of a file would be more than all documents can have.
pub(super) fn is_full(
    connection: &Connection,
    file: u64,
    count: usize,
    most: u64,
) -> Outcome<bool> {
    sql::one(
        connection,
        // Ids only grow, so that the passages are rarely counted.
        "SELECT coalesce(max(id), 0) + ?2 > ?3 AND (SELECT count(*) FROM document_passages WHERE file <> ?1) + ?2 > ?3
         FROM document_passages",
        params![file, count, most],
        |row| row.get(0),
    )
}

/// Stores the passages of a document in place of those that its file had.
pub(super) fn replace(connection: &Connection, file: u64, document: &NewDocument) -> Outcome<()> {
    sql::run(
        connection,
        "DELETE FROM document_passages WHERE file = ?1",
        [file],
    )?;
    for (place, passage) in document.passages.iter().enumerate() {
        let headings = serde_json::to_string(&passage.headings).unwrap_or_default();
        let id: u64 = sql::one(
            connection,
            "INSERT INTO document_passages (file, place, headings, page, line, fresh, text)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) RETURNING id",
            params![
                file,
                place,
                headings,
                passage.page,
                passage.line,
                passage.fresh,
                passage.text,
            ],
            |row| row.get(0),
        )?;
        characters::PASSAGES.index(connection, id, &[&headings, &passage.text])?;
        if let (Some(vector), Some(model)) = (&passage.vector, &document.embedder) {
            let insert = "INSERT INTO document_vectors (passage, file, model, vector) VALUES (?1, ?2, ?3, ?4)";
            sql::run(connection, insert, params![id, file, model, vector])?;
        }
    }
    Ok(())
}

fn similar_passages(
    connection: &Connection,
    model: &str,
    vector: &[f32],
    place: &Place,
    limit: usize,
) -> Outcome<Vec<(u64, f32)>> {
    // The files in this place with the number of their passages, rather than a join for each vector. What is counted down to 0 is
    // whole.
    let mut unread: HashMap<u64, u64> = sql::all(
        connection,
        "SELECT document_files.id, (SELECT count(*) FROM document_passages WHERE file = document_files.id)
         FROM document_files JOIN document_sources ON document_sources.id = source
         WHERE (?1 IS NULL OR collection = ?1) AND (?2 IS NULL OR document_files.id = ?2)",
        params![place.collection, place.file],
        |row| row.try_into(),
    )?;
    let mut statement =
        connection.prepare_cached("SELECT passage, file, model, vector FROM document_vectors")?;
    let mut rows = statement.query([])?;
    let mut found: Vec<(u64, u64, f32)> = Vec::new();
    while let Some(row) = rows.next()? {
        let file: u64 = row.get(1)?;
        let Some(unread) = unread.get_mut(&file) else {
            continue;
        };
        if row.get_ref(2)?.as_str()? != model {
            continue;
        }
        *unread = unread.saturating_sub(1);
        if let Some(alike) = vectors::similarity(row.get_ref(3)?.as_blob()?, vector) {
            found.push((file, row.get(0)?, alike));
        }
    }
    let whole = found
        .into_iter()
        .filter(|(file, ..)| unread.get(file) == Some(&0));
    let mut found: Vec<(u64, f32)> = whole.map(|(_, passage, alike)| (passage, alike)).collect();
    found
        .sort_unstable_by(|(early, one), (late, other)| other.total_cmp(one).then(early.cmp(late)));
    found.truncate(limit);
    Ok(found)
}

/// A query of passages, with this as their text.
fn select(text: &str) -> String {
    format!(
        "SELECT document_passages.id, file, document_files.path, nullif(title, ''), collection, headings, page, line, {text}
         FROM document_passages JOIN document_files ON document_files.id = file
         JOIN document_sources ON document_sources.id = source"
    )
}

fn passage(row: &Row) -> rusqlite::Result<Passage> {
    let (path, title): (String, Option<String>) = (row.get(2)?, row.get(3)?);
    // A part of the text's bytes begins where a passage's own text does, which no letter is cut by.
    let text = row.get_ref(8)?.as_bytes()?;
    Ok(Passage {
        id: row.get(0)?,
        file: row.get(1)?,
        title: title.unwrap_or_else(|| path.rsplit('/').next().unwrap_or_default().to_owned()),
        path,
        collection: row.get(4)?,
        headings: row.get::<_, Json<_>>(5)?.0,
        page: row.get(6)?,
        line: row.get(7)?,
        text: String::from_utf8_lossy(text).into_owned(),
        score: 0.0,
    })
}

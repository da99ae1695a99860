//! The passages, and how they are found by their vectors, all of which a search compares.
//!
//! Ten thousand vectors of 384 numbers are 4 MB as they are packed, and are compared in the time of reading them; an index of
//! neighbors, or an extension of SQLite, would have to be kept as well and would answer no sooner.

use super::{NewDocument, no_file};
use crate::{
    Store, characters,
    json::{of_json, to_json},
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
        self.call(move |database| {
            database.read(|connection| similar_passages(connection, &model, &vector, &place, limit))
        })
        .await
    }

    /// Returns these passages in this order, those that are still there.
    pub async fn passages(&self, ids: Vec<u64>) -> Result<Vec<Passage>, Error> {
        self.call(move |database| {
            database.read(|connection| {
                let mut found: HashMap<u64, Passage> = connection
                    .prepare_cached(&format!(
                        "{} WHERE document_passages.id IN (SELECT value FROM json_each(?1))",
                        select("text")
                    ))?
                    .query_map([to_json(&ids)?], passage)?
                    .map(|found| found.map(|passage| (passage.id, passage)))
                    .collect::<rusqlite::Result<_>>()?;
                Ok(ids.iter().filter_map(|id| found.remove(id)).collect())
            })
        })
        .await
    }

    /// Returns a passage with those before and behind it in its document, in their order. Their texts do not repeat one another, but
    /// for the passage's own, which is whole.
    ///
    /// # Errors
    /// [`Code::NotFound`], also once its document has changed.
    pub async fn passages_around(&self, id: u64) -> Result<Vec<Passage>, Error> {
        self.call(move |database| {
            let around = database.read(|connection| passages_around(connection, id))?;
            if around.is_empty() {
                let message = format!("there is no passage {id}");
                return Err(Error::new(Code::NotFound, message)
                    .hint("its document has changed or was removed; search again"));
            }
            Ok(around)
        })
        .await
    }

    /// Returns the text of a document, passage by passage, without what they repeat.
    pub async fn document_text(&self, file: u64) -> Result<Vec<Passage>, Error> {
        self.call(move |database| {
            let passages: Vec<Passage> = database.read(|connection| {
                connection
                    .prepare_cached(&format!(
                        "{} WHERE file = ?1 ORDER BY place",
                        select(OWN_TEXT)
                    ))?
                    .query_map([file], passage_of_bytes)?
                    .collect()
            })?;
            if passages.is_empty() {
                return Err(no_file(file));
            }
            Ok(passages)
        })
        .await
    }

    /// Returns about the memory that [`Self::document_text`] takes.
    pub async fn document_size(&self, file: u64) -> Result<u64, Error> {
        self.call(move |database| {
            database.read(|connection| {
                connection
                    .prepare_cached(
                        "SELECT coalesce(sum(octet_length(text) + octet_length(headings) + ?2), 0)
                         FROM document_passages WHERE file = ?1",
                    )?
                    .query_row([file, AROUND_A_PASSAGE], |row| row.get(0))
            })
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
        self.call(move |database| {
            database.read(|connection| {
                connection
                    .prepare_cached(
                        "SELECT document_passages.id, document_passages.file, coalesce(title, ''), headings, text FROM document_passages
                         JOIN document_files ON document_files.id = document_passages.file
                         LEFT JOIN document_vectors ON passage = document_passages.id AND model = ?1
                         WHERE passage IS NULL AND document_passages.file = (
                            SELECT all_passages.file FROM document_passages AS all_passages
                            LEFT JOIN document_vectors AS all_vectors
                            ON all_vectors.passage = all_passages.id AND all_vectors.model = ?1
                            WHERE all_vectors.passage IS NULL ORDER BY all_passages.id LIMIT 1
                         ) ORDER BY document_passages.id LIMIT ?2",
                    )?
                    .query_map(params![model, limit], |row| {
                        let headings: String = row.get(3)?;
                        Ok(Unread {
                            id: row.get(0)?,
                            file: row.get(1)?,
                            title: row.get(2)?,
                            headings: of_json(3, &headings)?,
                            text: row.get(4)?,
                        })
                    })?
                    .collect()
            })
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
        self.call(move |database| {
            database.write(|change| {
                let mut insert = change.prepare_cached(
                    "INSERT OR REPLACE INTO document_vectors (passage, file, model, vector)
                     SELECT id, file, ?2, ?3 FROM document_passages WHERE id = ?1",
                )?;
                for (passage, vector) in &vectors {
                    insert.execute(params![passage, model, vector])?;
                }
                Ok(())
            })
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
) -> rusqlite::Result<bool> {
    // Ids only grow, so that the passages are rarely counted.
    connection
        .prepare_cached(
            "SELECT coalesce(max(id), 0) + ?2 > ?3 AND (SELECT count(*) FROM document_passages WHERE file <> ?1) + ?2 > ?3
             FROM document_passages",
        )?
        .query_row(params![file, count, most], |row| row.get(0))
}

pub(super) fn remove(connection: &Connection, file: u64) -> rusqlite::Result<()> {
    connection
        .prepare_cached("DELETE FROM document_passages WHERE file = ?1")?
        .execute([file])?;
    Ok(())
}

pub(super) fn replace(
    connection: &Connection,
    file: u64,
    document: &NewDocument,
) -> rusqlite::Result<()> {
    remove(connection, file)?;
    let mut insert = connection.prepare_cached(
        "INSERT INTO document_passages (file, place, headings, page, line, fresh, text)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) RETURNING id",
    )?;
    let mut insert_vector = connection.prepare_cached(
        "INSERT INTO document_vectors (passage, file, model, vector) VALUES (?1, ?2, ?3, ?4)",
    )?;
    for (place, passage) in document.passages.iter().enumerate() {
        let headings = to_json(&passage.headings)?;
        let id: u64 = insert.query_row(
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
            insert_vector.execute(params![id, file, model, vector])?;
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
) -> rusqlite::Result<Vec<(u64, f32)>> {
    // The files in this place with the number of their passages, rather than a join for each vector. What is counted down to 0 is
    // whole.
    let mut unread: HashMap<u64, u64> = connection
        .prepare_cached(
            "SELECT document_files.id, (SELECT count(*) FROM document_passages WHERE file = document_files.id)
             FROM document_files JOIN document_sources ON document_sources.id = source
             WHERE (?1 IS NULL OR collection = ?1) AND (?2 IS NULL OR document_files.id = ?2)",
        )?
        .query_map(params![place.collection, place.file], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?
        .collect::<rusqlite::Result<_>>()?;
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
    let whole = |file: &u64| unread.get(file) == Some(&0);
    let mut found: Vec<(u64, f32)> = found
        .into_iter()
        .filter(|(file, ..)| whole(file))
        .map(|(_, passage, alike)| (passage, alike))
        .collect();
    found
        .sort_unstable_by(|(early, one), (late, other)| other.total_cmp(one).then(early.cmp(late)));
    found.truncate(limit);
    Ok(found)
}

fn passages_around(connection: &Connection, id: u64) -> rusqlite::Result<Vec<Passage>> {
    connection
        .prepare_cached(&format!(
            "{} WHERE file = (SELECT file FROM document_passages WHERE id = ?1)
                 AND place BETWEEN (SELECT place FROM document_passages WHERE id = ?1) - ?2
                 AND (SELECT place FROM document_passages WHERE id = ?1) + ?2 ORDER BY place",
            select(&format!(
                "CASE document_passages.id WHEN ?1 THEN CAST(text AS BLOB) ELSE {OWN_TEXT} END"
            ))
        ))?
        .query_map(params![id, AROUND], passage_of_bytes)?
        .collect()
}

/// A query of passages, with this as their text.
fn select(text: &str) -> String {
    format!(
        "SELECT document_passages.id, file, document_files.path, coalesce(title, ''), collection, headings, page, line, {text}
         FROM document_passages JOIN document_files ON document_files.id = file
         JOIN document_sources ON document_sources.id = source"
    )
}

fn passage(row: &Row) -> rusqlite::Result<Passage> {
    let text: String = row.get(8)?;
    of_row(row, text)
}

/// Of a column with a part of the text's bytes. A part begins where a passage's own text does, which no letter is cut by.
fn passage_of_bytes(row: &Row) -> rusqlite::Result<Passage> {
    let bytes: Vec<u8> = row.get(8)?;
    of_row(row, String::from_utf8_lossy(&bytes).into_owned())
}

fn of_row(row: &Row, text: String) -> rusqlite::Result<Passage> {
    let (path, title, headings): (String, String, String) = (row.get(2)?, row.get(3)?, row.get(5)?);
    let name = path.rsplit('/').next().unwrap_or_default();
    let title = match title.is_empty() {
        true => name.to_owned(),
        false => title,
    };
    Ok(Passage {
        id: row.get(0)?,
        file: row.get(1)?,
        title,
        path,
        collection: row.get(4)?,
        headings: of_json(5, &headings)?,
        page: row.get(6)?,
        line: row.get(7)?,
        text,
        score: 0.0,
    })
}

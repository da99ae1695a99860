//! The passages of documents.

use super::no_file;
use crate::{
    Store,
    sql::{self, Json, Outcome},
};
use rusqlite::{Connection, Row, params};
use std::collections::HashMap;
use tierbar_core::{Code, Error, documents::Passage};

/// The most passages of all documents: about a gigabyte of text.
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

impl Store {
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
            "{} WHERE (file, document_passages.version) = (SELECT file, version FROM document_passages WHERE id = ?1)
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
                 FROM document_passages WHERE file = ?1 AND version = (SELECT version FROM document_files WHERE id = ?1)",
                [file, AROUND_A_PASSAGE],
                |row| row.get(0),
            )
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
        // Ids only grow, so that the passages are rarely summed.
        "SELECT coalesce(max(id), 0) + ?2 > ?3 AND (SELECT coalesce(sum(passages), 0) FROM document_files WHERE id <> ?1) + ?2 > ?3
         FROM document_passages",
        params![file, count, most],
        |row| row.get(0),
    )
}

/// A query of passages, with this as their text.
fn select(text: &str) -> String {
    format!(
        "SELECT document_passages.id, file, document_files.path, nullif(title, ''), collection, headings, page, line, {text}
         FROM document_passages JOIN document_files ON document_files.id = file AND document_files.version = document_passages.version
         JOIN document_sources ON document_sources.id = source AND NOT is_removed"
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

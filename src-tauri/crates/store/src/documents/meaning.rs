//! How passages are found by their meaning: a search compares the sketches of all vectors, then the vectors whose sketches are the nearest.
//!
//! A sketch is an eighth of its vector, and many are in a row, so that a search reads little and keeps nothing in memory. It finds all where
//! there are no more vectors than it compares; among 40,000 of 384 numbers, 49 of the 50 most alike (random ones, in clusters).

use super::Place;
use crate::{
    Store,
    sql::{self, Json, Outcome},
};
use rusqlite::{Connection, params};
use std::collections::{BinaryHeap, HashSet};
use tierbar_core::{Error, documents::vectors};

/// So many vectors are compared, those with the nearest sketches.
const CANDIDATES: usize = 2000;
/// Sketches in one row, for an index that has none yet.
const IN_A_ROW: usize = 512;
/// Bytes of a passage's id.
const ID: usize = 8;
/// A file that this model has not read to its end, rather one that it has begun.
const UNREAD_FILE: &str = "(
    SELECT id FROM (
        SELECT id, source FROM document_files WHERE embedder = ?1 AND embedded < passages
        UNION ALL SELECT id, source FROM document_files WHERE embedder < ?1 AND passages > 0
        UNION ALL SELECT id, source FROM document_files WHERE embedder > ?1 AND passages > 0
    ) WHERE source NOT IN (SELECT id FROM document_sources WHERE is_removed) LIMIT 1
)";

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
        let (model, most) = (model.to_owned(), CANDIDATES.max(limit));
        self.read(move |connection| {
            let nearest = nearest(connection, &model, &vector, &place, most)?;
            let mut alike = compare(connection, &vector, &nearest)?;
            alike.truncate(limit);
            Ok(alike)
        })
        .await
    }

    /// Returns passages of one document that this model has not read, in their order.
    pub async fn passages_without_vectors(
        &self,
        model: &str,
        limit: usize,
    ) -> Result<Vec<Unread>, Error> {
        let unread = format!(
            "SELECT document_passages.id, document_passages.file, coalesce(title, ''), headings, text FROM document_passages
             JOIN document_files ON document_files.id = document_passages.file
                 AND document_files.version = document_passages.version
             LEFT JOIN document_vectors ON passage = document_passages.id AND model = ?1
             WHERE passage IS NULL AND document_passages.file = {UNREAD_FILE} ORDER BY place LIMIT ?2"
        );
        self.all(unread, (model.to_owned(), limit), |row| {
            Ok(Unread {
                id: row.get(0)?,
                file: row.get(1)?,
                title: row.get(2)?,
                headings: row.get::<_, Json<_>>(3)?.0,
                text: row.get(4)?,
            })
        })
        .await
    }

    /// Stores vectors of a document's passages; those of another model are removed. A passage that is gone meanwhile is left out.
    pub async fn put_passage_vectors(
        &self,
        file: u64,
        model: &str,
        vectors: Vec<(u64, Vec<u8>)>,
    ) -> Result<(), Error> {
        let model = model.to_owned();
        self.write(move |change| add_vectors(change, file, &model, &vectors))
            .await
    }
}

/// Stores vectors of a file's passages, with their sketches.
pub(super) fn add_vectors<V: AsRef<[u8]>>(
    connection: &Connection,
    file: u64,
    model: &str,
    vectors: &[(u64, V)],
) -> Outcome<()> {
    let other = "UPDATE document_files SET embedder = ?2, embedded = 0, refused = 0 WHERE id = ?1 AND embedder <> ?2";
    if sql::run(connection, other, params![file, model])? > 0 {
        forget_vectors(connection, file)?;
    }
    let insert = "INSERT OR IGNORE INTO document_vectors (passage, file, model, vector)
        SELECT id, file, ?3, ?4 FROM document_passages
        WHERE id = ?1 AND file = ?2 AND version = (SELECT version FROM document_files WHERE id = ?2)";
    let mut added = Vec::with_capacity(vectors.len());
    for (passage, vector) in vectors {
        let vector: &[u8] = vector.as_ref();
        if sql::run(connection, insert, params![passage, file, model, vector])? > 0 {
            added.push((*passage, vector));
        }
    }
    let none = vectors::pack(&[]);
    let refused = added.iter().filter(|(_, vector)| *vector == none).count();
    let counted =
        "UPDATE document_files SET embedded = embedded + ?2, refused = refused + ?3 WHERE id = ?1";
    sql::run(connection, counted, params![file, added.len(), refused])?;
    add_sketches(connection, file, &added)
}

/// Removes the vectors of a file's passages.
fn forget_vectors(connection: &Connection, file: u64) -> Outcome<()> {
    let vectors = "DELETE FROM document_vectors
        WHERE passage IN (SELECT id FROM document_passages WHERE file = ?1)";
    sql::run(connection, vectors, [file])?;
    forget_sketches(connection, file)
}

pub(super) fn forget_sketches(connection: &Connection, file: u64) -> Outcome<()> {
    let sketches = "DELETE FROM document_sketches WHERE file = ?1";
    sql::run(connection, sketches, [file])?;
    Ok(())
}

fn add_sketches<V: AsRef<[u8]>>(
    connection: &Connection,
    file: u64,
    vectors: &[(u64, V)],
) -> Outcome<()> {
    let drawn = vectors
        .iter()
        .map(|(_, vector)| vectors::sketch(vector.as_ref()));
    let mut drawn: Vec<Vec<u8>> = drawn.collect();
    let length = drawn.iter().map(Vec::len).max().unwrap_or_default();
    if length == 0 {
        return Ok(());
    }
    // A vector without numbers is near to nothing.
    for sketch in &mut drawn {
        sketch.resize(length, 0);
    }
    let ids: Vec<u8> = vectors
        .iter()
        .flat_map(|(passage, _)| passage.to_le_bytes())
        .collect();
    let insert = "INSERT INTO document_sketches (file, passages, sketches) VALUES (?1, ?2, ?3)";
    sql::run(connection, insert, params![file, ids, drawn.concat()])?;
    Ok(())
}

/// Draws the vectors that an older version stored.
pub(crate) fn sketch_earlier(connection: &Connection) -> Outcome<()> {
    let files = "SELECT id FROM files_to_sketch";
    let files: Vec<u64> = sql::all(connection, files, [], |row| row.get(0))?;
    for file in files {
        let of_file = "SELECT passage, vector FROM document_passages
            JOIN document_vectors ON passage = document_passages.id
            WHERE document_passages.file = ?1 ORDER BY place";
        let vectors: Vec<(u64, Vec<u8>)> =
            sql::all(connection, of_file, [file], |row| row.try_into())?;
        for part in vectors.chunks(IN_A_ROW) {
            add_sketches(connection, file, part)?;
        }
    }
    sql::run(connection, "DELETE FROM files_to_sketch", [])?;
    Ok(())
}

/// Returns the passages in this place with the nearest sketches, in no order. `most`: how many of them.
fn nearest(
    connection: &Connection,
    model: &str,
    vector: &[f32],
    place: &Place,
    most: usize,
) -> Outcome<Vec<u64>> {
    // Rather than a join for each row.
    let whole: HashSet<u64> = sql::all(
        connection,
        "SELECT document_files.id FROM document_files JOIN document_sources ON document_sources.id = source
         WHERE embedder = ?1 AND passages > 0 AND embedded = passages AND NOT is_removed
             AND (?2 IS NULL OR collection = ?2) AND (?3 IS NULL OR document_files.id = ?3)",
        params![model, place.collection, place.file],
        |row| row.get(0),
    )?;
    let wanted = vectors::sketch(&vectors::pack(vector));
    if whole.is_empty() || wanted.is_empty() {
        return Ok(Vec::new());
    }
    let mut nearest = BinaryHeap::new();
    let all = "SELECT file, passages, sketches FROM document_sketches";
    let mut statement = connection.prepare_cached(all)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let file: u64 = row.get(0)?;
        if !whole.contains(&file) {
            continue;
        }
        let (ids, _) = row.get_ref(1)?.as_blob()?.as_chunks::<ID>();
        let sketches = row.get_ref(2)?.as_blob()?;
        // Of vectors of another length.
        if sketches.len() != ids.len() * wanted.len() {
            continue;
        }
        for (id, sketch) in ids.iter().zip(sketches.chunks_exact(wanted.len())) {
            let one = (vectors::distance(sketch, &wanted), u64::from_le_bytes(*id));
            if nearest.len() < most {
                nearest.push(one);
            } else if let Some(mut farthest) = nearest.peek_mut()
                && one < *farthest
            {
                *farthest = one;
            }
        }
    }
    Ok(nearest.into_iter().map(|(_, id)| id).collect())
}

/// Returns how alike the vectors of these passages are to one of length 1, the best first.
fn compare(connection: &Connection, vector: &[f32], passages: &[u64]) -> Outcome<Vec<(u64, f32)>> {
    let select = "SELECT passage, vector FROM document_vectors
        WHERE passage IN (SELECT value FROM json_each(?1))";
    let mut statement = connection.prepare_cached(select)?;
    let mut rows = statement.query([Json(passages)])?;
    let mut alike: Vec<(u64, f32)> = Vec::with_capacity(passages.len());
    while let Some(row) = rows.next()? {
        if let Some(similarity) = vectors::similarity(row.get_ref(1)?.as_blob()?, vector) {
            alike.push((row.get(0)?, similarity));
        }
    }
    alike
        .sort_unstable_by(|(early, one), (late, other)| other.total_cmp(one).then(early.cmp(late)));
    Ok(alike)
}

//! What was added, and the files in it.

use super::no_file;
use crate::{
    Store,
    sql::{self, Outcome, Word},
};
use rusqlite::{Connection, Row, params};
use std::collections::HashMap;
use tierbar_core::{
    Code, Error,
    documents::{DocumentFile, DocumentSource, FileState},
};

const MOST_LISTED: u32 = 1000;
/// Files that are recorded at once, while chats wait.
const RECORDED: usize = 1000;
/// What is added by hand, one by one.
const MOST_SOURCES: usize = 1000;
const COLUMNS: &str =
    "document_files.id, source, document_files.path, state, kind, title, pages, size, notice,
    passages, document_files.added";

/// A file as it was found on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenFile {
    pub path: String,
    pub size: u64,
    /// Nanoseconds since 1970.
    pub modified: i64,
}

/// A file that is to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingFile {
    pub id: u64,
    pub path: String,
    pub size: u64,
    pub modified: i64,
    /// Of the bytes that its passages are from; empty until it has been read.
    pub sha256: String,
    /// Whether a model writes down the text of pages that are pictures.
    pub read_pictures: bool,
}

/// What a collection has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collection {
    pub name: String,
    /// Files that are searched, that are still to be read, and that cannot be read.
    pub indexed: u64,
    pub waiting: u64,
    pub failed: u64,
    pub size_bytes: u64,
    /// When its first file or folder was added, of those that are still there, in seconds since 1970.
    pub added_at: u64,
}

/// Which files of a collection, between two ids.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FileRange {
    pub above: Option<u64>,
    pub below: Option<u64>,
    pub state: Option<FileState>,
    /// Whether the largest id is first.
    pub descending: bool,
    pub limit: u32,
}

impl Store {
    /// Returns the collections by name. One that has no file or folder is not there.
    pub async fn document_collections(&self) -> Result<Vec<Collection>, Error> {
        let select = "SELECT collection, count(CASE state WHEN 'indexed' THEN 1 END), count(CASE state WHEN 'waiting' THEN 1 END),
                count(CASE state WHEN 'failed' THEN 1 END), coalesce(sum(size), 0), min(document_sources.added)
            FROM document_sources LEFT JOIN document_files ON document_files.source = document_sources.id
            WHERE NOT is_removed GROUP BY collection ORDER BY collection";
        self.all(select, [], |row| {
            Ok(Collection {
                name: row.get(0)?,
                indexed: row.get(1)?,
                waiting: row.get(2)?,
                failed: row.get(3)?,
                size_bytes: row.get(4)?,
                added_at: row.get(5)?,
            })
        })
        .await
    }

    /// Returns files of a collection by id.
    pub async fn collection_files(
        &self,
        collection: String,
        range: FileRange,
    ) -> Result<Vec<DocumentFile>, Error> {
        let order = if range.descending { "DESC" } else { "ASC" };
        let select = format!(
            "SELECT {COLUMNS} FROM document_files JOIN document_sources ON document_sources.id = source
             WHERE collection = ?1 AND NOT is_removed AND (?2 IS NULL OR document_files.id > ?2)
                 AND (?3 IS NULL OR document_files.id < ?3) AND (?4 IS NULL OR state = ?4)
             ORDER BY document_files.id {order} LIMIT ?5"
        );
        let state = range.state.map(Word);
        let params = (collection, range.above, range.below, state, range.limit);
        self.all(select, params, file).await
    }

    /// Returns what was added, by collection and path, with its figures. `without_vectors` counts the passages that
    /// [`Store::passages_like`] leaves out: those whose vector has no numbers, and all of a document of which this model has not read
    /// every passage; without a model, all passages.
    pub async fn document_sources(
        &self,
        embedder: Option<&str>,
    ) -> Result<Vec<DocumentSource>, Error> {
        let embedder = embedder.map(str::to_owned);
        self.read(move |connection| list(connection, embedder.as_deref()))
            .await
    }

    /// Adds a file or folder.
    ///
    /// # Errors
    /// [`Code::Conflict`] for one that is added already, itself or with a folder above it, and for more than 1000.
    pub async fn add_document_source(
        &self,
        path: &str,
        collection: &str,
        is_folder: bool,
    ) -> Result<DocumentSource, Error> {
        let (path, collection) = (path.to_owned(), collection.to_owned());
        self.write(move |change| {
            check_new(change, &path)?;
            sql::run(
                change,
                "INSERT INTO document_sources (path, collection, is_folder, added) VALUES (?1, ?2, ?3, unixepoch())",
                params![path, collection, is_folder],
            )?;
            Ok(DocumentSource {
                id: u64::try_from(change.last_insert_rowid()).unwrap_or_default(),
                path,
                collection,
                is_folder,
                ..DocumentSource::default()
            })
        })
        .await
    }

    /// Sets whether a model writes down the text of a source's pages that are pictures. If so, its files with a notice are read again.
    pub async fn set_read_pictures(&self, id: u64, read: bool) -> Result<(), Error> {
        self.write(move |change| {
            let update = "UPDATE document_sources SET read_pictures = ?2 WHERE id = ?1";
            check_source(id, sql::run(change, update, params![id, read])?)?;
            if read {
                sql::run(
                    change,
                    "UPDATE document_files SET state = 'waiting', sha256 = '' WHERE source = ?1 AND notice IS NOT NULL",
                    [id],
                )?;
            }
            Ok(())
        })
        .await
    }

    /// Records which files a source has now, a part at a time: new and changed ones wait to be read, and those that are gone are
    /// forgotten. Returns whether anything changed.
    pub async fn sync_documents(&self, source: u64, files: Vec<SeenFile>) -> Result<bool, Error> {
        let known = self.read(move |connection| known_files(connection, source));
        let mut known = known.await?;
        let mut seen = Vec::new();
        for file in files {
            match known.remove(&file.path) {
                Some((_, size, at)) if (size, at) == (file.size, file.modified) => {}
                before => seen.push((before.map(|(id, ..)| id), file)),
            }
        }
        let gone: Vec<u64> = known.into_values().map(|(id, ..)| id).collect();
        let mut changes = gone.len();
        for part in seen.chunks(RECORDED) {
            let part = part.to_vec();
            changes += self
                .write(move |change| record(change, source, &part))
                .await?;
        }
        self.remove_files(gone).await?;
        Ok(changes > 0)
    }

    /// Returns the file of a source with this path, or those in the folder that has it, as they were seen last.
    pub async fn document_files_in(
        &self,
        source: u64,
        folder: &str,
    ) -> Result<Vec<SeenFile>, Error> {
        let select = "SELECT path, size, modified FROM document_files
            WHERE source = ?1 AND substr(path || '/', 1, length(?2)) = ?2";
        self.all(select, (source, format!("{folder}/")), |row| {
            Ok(SeenFile {
                path: row.get(0)?,
                size: row.get(1)?,
                modified: row.get(2)?,
            })
        })
        .await
    }

    /// Returns the next file to be read.
    pub async fn next_document(&self) -> Result<Option<WaitingFile>, Error> {
        self.next_document_after(0).await
    }

    /// Returns the next file to be read behind the one with the id `after`.
    pub async fn next_document_after(&self, after: u64) -> Result<Option<WaitingFile>, Error> {
        self.read(move |connection| {
            sql::first(
                connection,
                "SELECT document_files.id, document_files.path, size, modified, sha256, read_pictures
                 FROM document_files JOIN document_sources ON document_sources.id = source
                 WHERE state = 'waiting' AND NOT is_removed AND document_files.id > ?1
                 ORDER BY document_files.id LIMIT 1",
                [after],
                |row| {
                    Ok(WaitingFile {
                        id: row.get(0)?,
                        path: row.get(1)?,
                        size: row.get(2)?,
                        modified: row.get(3)?,
                        sha256: row.get(4)?,
                        read_pictures: row.get(5)?,
                    })
                },
            )
        })
        .await
    }

    /// Returns the files of a source behind the one with the id `after`, at most 1000.
    pub async fn document_files(
        &self,
        source: u64,
        after: u64,
    ) -> Result<Vec<DocumentFile>, Error> {
        let select = format!(
            "SELECT {COLUMNS} FROM document_files WHERE source = ?1 AND id > ?2 ORDER BY id LIMIT {MOST_LISTED}"
        );
        self.all(select, [source, after], file).await
    }

    pub async fn document(&self, id: u64) -> Result<DocumentFile, Error> {
        let select = format!(
            "SELECT {COLUMNS} FROM document_files JOIN document_sources ON document_sources.id = source
             WHERE document_files.id = ?1 AND NOT is_removed"
        );
        self.read(move |connection| {
            let found = sql::first(connection, &select, [id], file)?;
            Ok(found.ok_or_else(|| no_file(id))?)
        })
        .await
    }
}

pub(super) fn check_source(id: u64, changed: usize) -> Result<(), Error> {
    if changed > 0 {
        return Ok(());
    }
    let message = format!("there is no source {id} of documents");
    Err(Error::new(Code::NotFound, message).hint("`tierbar documents list` shows the sources"))
}

fn list(connection: &Connection, embedder: Option<&str>) -> Outcome<Vec<DocumentSource>> {
    sql::all(
        connection,
        "SELECT sources.id, sources.path, collection, is_folder,
            count(CASE state WHEN 'indexed' THEN 1 END),
            count(CASE state WHEN 'waiting' THEN 1 END),
            count(CASE state WHEN 'failed' THEN 1 END),
            count(CASE WHEN state = 'indexed' AND notice IS NOT NULL THEN 1 END),
            read_pictures,
            coalesce(sum(passages), 0),
            coalesce(sum(CASE WHEN embedder = ?1 AND embedded = passages THEN refused ELSE passages END), 0)
         FROM document_sources AS sources LEFT JOIN document_files ON source = sources.id
         WHERE NOT is_removed GROUP BY sources.id ORDER BY collection COLLATE NOCASE, sources.path",
        [embedder],
        |row| {
            Ok(DocumentSource {
                id: row.get(0)?,
                path: row.get(1)?,
                collection: row.get(2)?,
                is_folder: row.get(3)?,
                indexed: row.get(4)?,
                waiting: row.get(5)?,
                failed: row.get(6)?,
                noticed: row.get(7)?,
                read_pictures: row.get(8)?,
                passages: row.get(9)?,
                without_vectors: row.get(10)?,
                ..DocumentSource::default()
            })
        },
    )
}

fn file(row: &Row) -> rusqlite::Result<DocumentFile> {
    Ok(DocumentFile {
        id: row.get(0)?,
        source: row.get(1)?,
        path: row.get(2)?,
        state: row.get::<_, Word<_>>(3)?.0,
        kind: row.get::<_, Option<Word<_>>>(4)?.map(|Word(kind)| kind),
        title: row.get(5)?,
        pages: row.get(6)?,
        size_bytes: row.get(7)?,
        notice: row.get(8)?,
        passages: row.get(9)?,
        added_at: row.get(10)?,
    })
}

fn check_new(connection: &Connection, path: &str) -> Outcome<()> {
    let select = "SELECT path, is_folder, is_removed FROM document_sources";
    let sources: Vec<(String, bool, bool)> =
        sql::all(connection, select, [], |row| row.try_into())?;
    let holds = |(known, is_folder, _): &&(String, bool, bool)| {
        let inside = path.strip_prefix(known.as_str());
        inside.is_some_and(|rest| rest.is_empty() || (*is_folder && rest.starts_with('/')))
    };
    if let Some((known, _, is_removed)) = sources.iter().find(holds) {
        if *is_removed {
            let message = format!("{known} is still being removed from the documents");
            return Err(Error::new(Code::Conflict, message)
                .hint("try again in a minute")
                .into());
        }
        let message = match known == path {
            true => format!("{path} is already among the documents"),
            false => format!("{path} is already among the documents, with the folder {known}"),
        };
        return Err(Error::new(Code::Conflict, message).into());
    }
    if sources.len() >= MOST_SOURCES {
        let message = format!("there are {MOST_SOURCES} files and folders among the documents");
        let error = Error::new(Code::Conflict, message);
        return Err(error.hint("add a folder that holds several of them").into());
    }
    Ok(())
}

/// The files of a source by their paths: each with its id, its size and its time.
type KnownFiles = HashMap<String, (u64, u64, i64)>;

fn known_files(connection: &Connection, source: u64) -> Outcome<KnownFiles> {
    sql::all(
        connection,
        "SELECT path, id, size, modified FROM document_files WHERE source = ?1",
        [source],
        |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?, row.get(3)?))),
    )
}

/// Records files that have changed, with their ids, or are new. Returns how many; none if the source was removed meanwhile.
fn record(
    connection: &Connection,
    source: u64,
    files: &[(Option<u64>, SeenFile)],
) -> Outcome<usize> {
    let insert = "INSERT INTO document_files (source, path, size, modified, added)
        SELECT id, ?2, ?3, ?4, unixepoch() FROM document_sources WHERE id = ?1 AND NOT is_removed";
    let update =
        "UPDATE document_files SET size = ?2, modified = ?3, state = 'waiting' WHERE id = ?1";
    let mut changes = 0;
    for (known, file) in files {
        let SeenFile {
            path,
            size,
            modified,
        } = file;
        changes += match known {
            Some(id) => sql::run(connection, update, params![id, size, modified])?,
            None => sql::run(connection, insert, params![source, path, size, modified])?,
        };
    }
    Ok(changes)
}

//! The tables of documents: what was added, its files, their passages, and what finds those.
//!
//! A file's passages are replaced in one transaction with their words and vectors, so that no search sees half of them.

mod passages;
mod sources;
mod words;

pub use passages::{Place, Unread};
pub use sources::{Collection, FileRange, SeenFile, WaitingFile};

use crate::{
    Store,
    sql::{self, Outcome, Word},
};
use rusqlite::{Connection, params};
use tierbar_core::{
    Code, Error,
    documents::{DocumentKind, FileState},
};

/// A passage to be stored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewPassage {
    pub headings: Vec<String>,
    pub page: Option<u32>,
    pub line: Option<u32>,
    /// Where what the passage before it does not have begins, in bytes.
    pub fresh: usize,
    pub text: String,
    /// As `core::documents::vectors` packs it. While one of its passages has none, a document is found by its words.
    pub vector: Option<Vec<u8>>,
}

/// What has been read of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewDocument {
    pub sha256: String,
    pub kind: Option<DocumentKind>,
    pub title: Option<String>,
    pub pages: Option<u32>,
    /// What is missing of it, in a sentence.
    pub notice: Option<String>,
    /// Whose the vectors are.
    pub embedder: Option<String>,
    pub passages: Vec<NewPassage>,
}

impl Store {
    /// Stores a file's passages in place of those that it had. A file that is gone meanwhile, or has changed again since it was seen
    /// with this size and time, keeps waiting or stays gone.
    pub async fn put_document(
        &self,
        file: WaitingFile,
        document: NewDocument,
    ) -> Result<(), Error> {
        self.write(move |change| put(change, &file, document, passages::MOST))
            .await
    }

    /// Records that a file's bytes are those that its passages are from: only its time has changed.
    pub async fn keep_document(&self, file: WaitingFile) -> Result<(), Error> {
        let kept = self.write(move |change| {
            sql::run(
                change,
                "UPDATE document_files SET state = CASE WHEN kind IS NULL THEN 'failed' ELSE 'indexed' END
                 WHERE id = ?1 AND size = ?2 AND modified = ?3",
                params![file.id, file.size, file.modified],
            )
        });
        kept.await.map(drop)
    }

    /// Records why a file cannot be read. It has no passages then. `sha256`: empty for one that could not be opened, which keeps what was
    /// read of it, and is read when it is seen again.
    pub async fn fail_document(
        &self,
        file: WaitingFile,
        sha256: String,
        why: String,
    ) -> Result<(), Error> {
        let document = NewDocument {
            sha256,
            notice: Some(why),
            ..NewDocument::default()
        };
        self.write(move |change| {
            if !finish(change, &file, &document, FileState::Failed)? {
                return Ok(());
            }
            if document.sha256.is_empty() {
                let unseen = "UPDATE document_files SET modified = -1 WHERE id = ?1";
                sql::run(change, unseen, [file.id])?;
                return Ok(());
            }
            passages::replace(change, file.id, &document)
        })
        .await
    }
}

/// `most`: the passages of all documents.
fn put(change: &Connection, file: &WaitingFile, document: NewDocument, most: u64) -> Outcome<()> {
    let is_full = passages::is_full(change, file.id, document.passages.len(), most)?;
    let (document, state) = if is_full {
        let notice = format!(
            "The index is full: it can have {most} passages. Remove files or folders that you do not search, then add this one again."
        );
        let refused = NewDocument {
            notice: Some(notice),
            ..NewDocument::default()
        };
        (refused, FileState::Failed)
    } else {
        (document, FileState::Indexed)
    };
    if finish(change, file, &document, state)? {
        passages::replace(change, file.id, &document)?;
    }
    Ok(())
}

/// Stores what has become of a file, if it is still as it was seen. Returns whether it was.
fn finish(
    connection: &Connection,
    file: &WaitingFile,
    document: &NewDocument,
    state: FileState,
) -> Outcome<bool> {
    let changed = sql::run(
        connection,
        "UPDATE document_files SET state = ?4, sha256 = ?5, kind = ?6, title = ?7, pages = ?8, notice = ?9
         WHERE id = ?1 AND size = ?2 AND modified = ?3",
        params![
            file.id,
            file.size,
            file.modified,
            Word(state),
            document.sha256,
            document.kind.map(Word),
            document.title,
            document.pages,
            document.notice,
        ],
    )?;
    Ok(changed > 0)
}

fn no_file(id: u64) -> Error {
    Error::new(Code::NotFound, format!("there is no document {id}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::Database;

    #[test]
    fn a_file_that_the_index_has_no_room_for_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::open(&folder.path().join("tierbar.db")).unwrap();
        let put = |id: u64, passages: usize| {
            let file = WaitingFile {
                id,
                path: format!("/d/{id}"),
                size: 1,
                modified: 1,
                sha256: String::new(),
                read_pictures: false,
            };
            let document = NewDocument {
                sha256: "ab".to_owned(),
                passages: vec![NewPassage::default(); passages],
                ..NewDocument::default()
            };
            database
                .write(|change| {
                    change.execute(
                        "INSERT OR IGNORE INTO document_sources (id, path, collection, is_folder) VALUES (1, '/d', 'D', 1)",
                        [],
                    )?;
                    change.execute(
                        "INSERT OR IGNORE INTO document_files (id, source, path, size, modified) VALUES (?1, 1, ?2, 1, 1)",
                        params![id, file.path],
                    )?;
                    super::put(change, &file, document, 10)?;
                    sql::one(
                        change,
                        "SELECT state, coalesce(notice, ''), sha256, (SELECT count(*) FROM document_passages)
                         FROM document_files WHERE id = ?1",
                        [id],
                        |row| <(String, String, String, u64)>::try_from(row),
                    )
                })
                .unwrap()
        };
        assert_eq!(
            put(1, 10),
            ("indexed".into(), String::new(), "ab".into(), 10)
        );
        let (state, notice, hash, passages) = put(2, 1);
        assert_eq!(
            (state.as_str(), hash.as_str(), passages),
            ("failed", "", 10)
        );
        assert!(
            notice.starts_with("The index is full: it can have 10"),
            "{notice}"
        );
        // Its own earlier passages make room.
        assert_eq!(put(1, 9).3, 9);
        assert_eq!(put(2, 1).3, 10);
        assert_eq!(put(1, 10).3, 1);
    }
}

//! The tables of documents: what was added, its files, their passages, and what finds those.
//!
//! A file's passages are shown at once with their words and vectors, so that no search sees half of them.

mod exchange;
mod meaning;
mod passages;
mod removal;
mod sources;
mod words;

pub use meaning::Unread;
pub(crate) use meaning::sketch_earlier;
pub use passages::Place;
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
        self.exchange(file, document, FileState::Indexed, passages::MOST)
            .await
    }

    /// Records that a file's bytes are those that its passages are from: only its time has changed.
    pub async fn keep_document(&self, file: WaitingFile) -> Result<(), Error> {
        let keep = "UPDATE document_files SET state = CASE WHEN kind IS NULL THEN 'failed' ELSE 'indexed' END
            WHERE id = ?1 AND size = ?2 AND modified = ?3";
        self.execute(keep, (file.id, file.size, file.modified))
            .await
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
        if !document.sha256.is_empty() {
            let failed = self.exchange(file, document, FileState::Failed, passages::MOST);
            return failed.await;
        }
        self.write(move |change| {
            if finish(change, &file, &document, FileState::Failed)? {
                let unseen = "UPDATE document_files SET modified = -1 WHERE id = ?1";
                sql::run(change, unseen, [file.id])?;
            }
            Ok(())
        })
        .await
    }
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

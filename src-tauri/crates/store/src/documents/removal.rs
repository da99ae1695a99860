//! How what is gone leaves the index: a part at a time, since chats are in the same file and wait for each part.

use super::sources::check_source;
use crate::{
    Store,
    database::Database,
    sql::{self, Outcome},
    unfinished,
};
use rusqlite::{Connection, params};
use std::time::Duration;
use tierbar_core::Error;

/// Passages and files that are removed at once, in some 30 ms.
const SLICE: usize = 500;
/// Pages of an index that are merged at once, in some 20 ms.
const MERGED: i64 = 16;
const INDEXES: [&str; 2] = ["passage_words", "passage_characters"];

impl Store {
    /// Forgets what was added, with its files and passages, also if the call is dropped. It is not shown from the start, and
    /// [`Self::clear_documents`] continues what does not come to its end. The files themselves stay where they are.
    pub async fn remove_document_source(&self, id: u64) -> Result<(), Error> {
        let store = self.clone();
        let removal = tokio::spawn(async move { store.remove_source(id).await });
        removal
            .await
            .unwrap_or_else(|ended| Err(unfinished(Some(ended))))
    }

    async fn remove_source(&self, id: u64) -> Result<(), Error> {
        let hidden = self.write(move |change| hide_source(change, id));
        check_source(id, hidden.await?)?;
        self.remove_hidden(id).await
    }

    async fn remove_hidden(&self, source: u64) -> Result<(), Error> {
        let files = "SELECT id FROM document_files WHERE source = ?1";
        let files: Vec<u64> = self.all(files, [source], |row| row.get(0)).await?;
        self.remove_files(files).await?;
        let remove = "DELETE FROM document_sources WHERE id = ?1";
        self.execute(remove, [source]).await?;
        self.forget_removed_words(Duration::ZERO).await?;
        self.call(Database::forget_erased).await
    }

    /// Removes what an earlier process has left of sources that were removed, and of documents that were exchanged.
    pub async fn clear_documents(&self) -> Result<(), Error> {
        let sources = "SELECT id FROM document_sources WHERE is_removed";
        let sources: Vec<u64> = self.all(sources, [], |row| row.get(0)).await?;
        for source in sources {
            self.remove_hidden(source).await?;
        }
        self.clear_exchanged().await
    }

    pub(super) async fn remove_files(&self, mut files: Vec<u64>) -> Result<(), Error> {
        while !files.is_empty() {
            files = self
                .write(move |change| {
                    remove_slice(change, &mut files, SLICE)?;
                    Ok(files)
                })
                .await?;
        }
        Ok(())
    }

    /// Merges the index, which still has the words of removed passages, if the first of these was removed at least so long ago.
    pub async fn forget_removed_words(&self, age: Duration) -> Result<(), Error> {
        let due = "SELECT count FROM removed_passages WHERE since + ?1 <= unixepoch()";
        let age = age.as_secs();
        let removed: Option<u64> = self
            .read(move |connection| sql::first(connection, due, [age], |row| row.get(0)))
            .await?;
        let Some(removed) = removed else {
            return Ok(());
        };
        for index in INDEXES {
            // The first one, with a negative number, makes it a merge of all (https://sqlite.org/fts5.html#the_merge_command).
            let mut pages = -MERGED;
            let step = |pages| self.write(move |change| merge(change, index, pages));
            while step(pages).await? {
                pages = MERGED;
            }
        }
        // If more were removed meanwhile, they wait for the next merge.
        let done = "DELETE FROM removed_passages WHERE count = ?1";
        self.execute(done, [removed]).await
    }
}

/// Hides a source, with its documents. Returns how many: none if it is hidden or there is none.
fn hide_source(connection: &Connection, id: u64) -> Outcome<usize> {
    let hide = "UPDATE document_sources SET is_removed = 1 WHERE id = ?1 AND NOT is_removed";
    sql::run(connection, hide, [id])
}

/// Removes so many passages and files at most, the last files first.
fn remove_slice(connection: &Connection, files: &mut Vec<u64>, most: usize) -> Outcome<()> {
    let some = "DELETE FROM document_passages
        WHERE id IN (SELECT id FROM document_passages WHERE file = ?1 LIMIT ?2)";
    let mut room = most;
    while let Some(&file) = files.last() {
        room -= sql::run(connection, some, params![file, room])?;
        if room == 0 {
            // The rest is not shown. Should it stay, it is read again.
            let hide =
                "UPDATE document_files SET state = 'waiting', sha256 = '', version = version + 1,
                passages = 0, embedded = 0, refused = 0 WHERE id = ?1";
            sql::run(connection, hide, [file])?;
            break;
        }
        let remove = "DELETE FROM document_files WHERE id = ?1";
        sql::run(connection, remove, [file])?;
        files.pop();
        room -= 1;
    }
    Ok(())
}

/// Merges pages of an index. Returns whether there may be more: a merge of nothing changes one row.
fn merge(connection: &Connection, index: &str, pages: i64) -> Outcome<bool> {
    let changes =
        || -> Outcome<i64> { sql::one(connection, "SELECT total_changes()", [], |row| row.get(0)) };
    let before = changes()?;
    let merge = format!("INSERT INTO {index} ({index}, rank) VALUES ('merge', ?1)");
    sql::run(connection, &merge, [pages])?;
    Ok(changes()? - before > 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NewDocument, NewPassage, Place, SeenFile};
    use tierbar_core::{Code, documents::vectors};

    #[tokio::test]
    async fn a_removal_that_was_interrupted_is_continued() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("tierbar.db")).unwrap();
        let add = || store.add_document_source("/d", "Papers", true);
        let source = add().await.unwrap().id;
        let seen = ["/d/a", "/d/b", "/d/c"].map(|path| SeenFile {
            path: path.to_owned(),
            size: 1,
            modified: 1,
        });
        let two = store.sync_documents(source, seen[..2].to_vec());
        assert!(two.await.unwrap());
        let file = store.next_document().await.unwrap().unwrap();
        let document = NewDocument {
            embedder: Some("minilm".to_owned()),
            passages: vec![NewPassage {
                text: "An owl.".to_owned(),
                vector: Some(vectors::pack(&[1.0, 0.0])),
                ..NewPassage::default()
            }],
            ..NewDocument::default()
        };
        store.put_document(file, document).await.unwrap();
        let found = async || {
            let words = store.passages_with_words("owl", Place::default(), 9);
            let like = store.passages_like("minilm", vec![1.0, 0.0], Place::default(), 9);
            let passages = store.passages(vec![1]).await.unwrap();
            let (words, like) = (words.await.unwrap(), like.await.unwrap());
            (words.len(), like.len(), passages.len())
        };
        assert_eq!(found().await, (1, 1, 1));
        let hidden = store.write(move |change| hide_source(change, source));
        assert_eq!(hidden.await.unwrap(), 1);
        assert_eq!(found().await, (0, 0, 0));
        assert_eq!(store.document_sources(None).await.unwrap(), []);
        assert_eq!(store.document_collections().await.unwrap(), []);
        assert_eq!(store.next_document().await.unwrap(), None);
        assert_eq!(store.document(1).await.unwrap_err().code, Code::NotFound);
        let unread = store.passages_without_vectors("other", 9);
        assert_eq!(unread.await.unwrap(), []);
        // A look that began before.
        let all = store.sync_documents(source, seen.to_vec());
        assert!(!all.await.unwrap());
        let error = add().await.unwrap_err();
        assert!(error.message.contains("still being removed"), "{error}");
        store.clear_documents().await.unwrap();
        let left = "SELECT count(*) FROM document_passages";
        let left = store.read(move |at| sql::one(at, left, [], |row| row.get::<_, u64>(0)));
        assert_eq!(left.await.unwrap(), 0);
        add().await.unwrap();
    }

    #[test]
    fn files_are_removed_a_part_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::open(&folder.path().join("tierbar.db")).unwrap();
        let fill = "INSERT INTO document_sources (id, path, collection, is_folder) VALUES (1, '/d', 'Papers', 1);
            INSERT INTO document_files (source, path, size, modified)
                SELECT 1, value, 1, 1 FROM json_each('[\"/d/a\", \"/d/b\", \"/d/c\", \"/d/d\"]');
            INSERT INTO document_passages (file, place, headings, fresh, text)
                SELECT 1, value, '[]', 0, 'owl' FROM json_each('[1, 2, 3, 4, 5, 6, 7]')";
        let filled = database.write(|change| Ok(change.execute_batch(fill)?));
        filled.unwrap();
        let mut files = vec![1, 2, 3];
        let mut left = Vec::new();
        while !files.is_empty() {
            let removed = database.write(|change| remove_slice(change, &mut files, 4));
            removed.unwrap();
            let count = "SELECT (SELECT count(*) FROM document_files), (SELECT count(*) FROM document_passages),
                (SELECT count(*) FROM document_passages JOIN document_files
                    ON document_files.id = file AND document_files.version = document_passages.version)";
            let counted: (u64, u64, u64) = database
                .read(|at| sql::one(at, count, [], |row| row.try_into()))
                .unwrap();
            left.push(counted);
        }
        assert_eq!(left, [(2, 5, 0), (2, 1, 0), (1, 0, 0)]);
        let merged = database.write(|change| {
            let mut steps = 0;
            while merge(change, "passage_words", if steps == 0 { -1 } else { 1 })? {
                steps += 1;
                assert!(steps < 99, "it has no end");
            }
            Ok(steps)
        });
        assert!(merged.unwrap() > 0, "nothing was merged");
        let found =
            "SELECT count(*) FROM passage_words_data WHERE instr(block, CAST('owl' AS BLOB))";
        let found: u64 = database
            .read(|at| sql::one(at, found, [], |row| row.get(0)))
            .unwrap();
        assert_eq!(found, 0);
    }
}

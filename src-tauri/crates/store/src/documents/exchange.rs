//! How a document takes the place of what its file had: a part at a time, since chats are in the same file and wait for each part. Its
//! passages are of the file's next version, which no search shows until all of them are there.

use super::{NewDocument, NewPassage, WaitingFile, finish, meaning, passages};
use crate::{
    Store, characters,
    sql::{self, Outcome},
};
use rusqlite::{Connection, params};
use std::mem;
use tierbar_core::{Error, documents::FileState};

/// Passages that are added or removed at once, in some 50 ms. Most documents have fewer, and are exchanged in one transaction.
const PART: usize = 128;

impl Store {
    /// Stores a document, if its file is still as it was seen. `most`: the passages of all documents.
    pub(super) async fn exchange(
        &self,
        file: WaitingFile,
        mut document: NewDocument,
        mut state: FileState,
        most: u64,
    ) -> Result<(), Error> {
        let (id, count) = (file.id, document.passages.len());
        let is_full = self.read(move |connection| passages::is_full(connection, id, count, most));
        if count > 0 && is_full.await? {
            let notice = format!(
                "The index is full: it can have {most} passages. Remove files or folders that you do not search, then add this one again."
            );
            state = FileState::Failed;
            document = NewDocument {
                notice: Some(notice),
                ..NewDocument::default()
            };
        }
        // What did not come to its end.
        self.clear(id).await?;
        let mut rest = mem::take(&mut document.passages).into_iter();
        let (mut place, mut vectors) = (0, Vec::new());
        while rest.len() > PART {
            let part: Vec<NewPassage> = rest.by_ref().take(PART).collect();
            let seen = file.clone();
            let added = self.write(move |change| add(change, &seen, place, part));
            let Some(added) = added.await? else {
                return self.clear(id).await;
            };
            vectors.extend(added);
            place += PART;
        }
        let last: Vec<NewPassage> = rest.collect();
        let is_cleared = self
            .write(move |change| {
                let count = place + last.len();
                if let Some(added) = add(change, &file, place, last)? {
                    vectors.extend(added);
                    finish(change, &file, &document, state)?;
                    show(change, id, &document, count, &vectors)?;
                }
                clear(change, id)
            })
            .await?;
        if is_cleared {
            return Ok(());
        }
        self.clear(id).await
    }

    /// Removes what exchanges that were interrupted have left.
    pub(super) async fn clear_exchanged(&self) -> Result<(), Error> {
        let left = "SELECT id FROM document_files WHERE EXISTS (
                SELECT 1 FROM document_passages WHERE file = document_files.id AND version < document_files.version
            )";
        let left: Vec<u64> = self.all(left, [], |row| row.get(0)).await?;
        for file in left {
            self.clear(file).await?;
        }
        Ok(())
    }

    async fn clear(&self, file: u64) -> Result<(), Error> {
        while !self.write(move |change| clear(change, file)).await? {}
        Ok(())
    }
}

/// Vectors of passages, by their ids.
type Vectors = Vec<(u64, Vec<u8>)>;

/// Adds passages of a file's next version, the first of them at this place. Returns their ids with the vectors of those that have one;
/// `None` if the file is gone or has changed.
fn add(
    connection: &Connection,
    file: &WaitingFile,
    place: usize,
    passages: Vec<NewPassage>,
) -> Outcome<Option<Vectors>> {
    let seen =
        "SELECT version + 1 FROM document_files WHERE id = ?1 AND size = ?2 AND modified = ?3";
    let seen: Option<u64> = sql::first(
        connection,
        seen,
        params![file.id, file.size, file.modified],
        |row| row.get(0),
    )?;
    let Some(version) = seen else {
        return Ok(None);
    };
    let insert =
        "INSERT INTO document_passages (file, version, place, headings, page, line, fresh, text)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) RETURNING id";
    let mut vectors = Vec::new();
    for (place, passage) in (place..).zip(passages) {
        let headings = serde_json::to_string(&passage.headings).unwrap_or_default();
        let id: u64 = sql::one(
            connection,
            insert,
            params![
                file.id,
                version,
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
        vectors.extend(passage.vector.map(|vector| (id, vector)));
    }
    Ok(Some(vectors))
}

/// Makes a file's next version the one that is searched. `count`: its passages.
fn show(
    connection: &Connection,
    file: u64,
    document: &NewDocument,
    count: usize,
    vectors: &[(u64, Vec<u8>)],
) -> Outcome<()> {
    let embedder = document.embedder.as_deref().unwrap_or_default();
    let next = "UPDATE document_files
        SET version = version + 1, passages = ?2, embedder = ?3, embedded = 0, refused = 0 WHERE id = ?1";
    sql::run(connection, next, params![file, count, embedder])?;
    meaning::forget_sketches(connection, file)?;
    meaning::add_vectors(connection, file, embedder, vectors)
}

/// Removes passages of a file's other versions. Returns whether it was all of them.
fn clear(connection: &Connection, file: u64) -> Outcome<bool> {
    let others = "DELETE FROM document_passages WHERE id IN (
            SELECT id FROM document_passages
            WHERE file = ?1 AND version <> (SELECT version FROM document_files WHERE id = ?1) LIMIT ?2
        )";
    Ok(sql::run(connection, others, params![file, PART])? < PART)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Place, SeenFile};

    /// A store with a file that waits.
    async fn one_file(folder: &tempfile::TempDir) -> (Store, WaitingFile) {
        let store = Store::open(&folder.path().join("tierbar.db")).unwrap();
        let source = store.add_document_source("/d", "Papers", true).await;
        let seen = ["/d/a", "/d/b"].map(|path| SeenFile {
            path: path.to_owned(),
            size: 1,
            modified: 1,
        });
        let synced = store.sync_documents(source.unwrap().id, seen.into());
        assert!(synced.await.unwrap());
        let file = store.next_document().await.unwrap().unwrap();
        (store, file)
    }

    fn document(word: &str, passages: usize) -> NewDocument {
        let passage = NewPassage {
            text: word.to_owned(),
            vector: Some(tierbar_core::documents::vectors::pack(&[1.0, 0.0])),
            ..NewPassage::default()
        };
        NewDocument {
            sha256: "ab".to_owned(),
            embedder: Some("minilm".to_owned()),
            passages: vec![passage; passages],
            ..NewDocument::default()
        }
    }

    /// How many passages are shown of those with this word, and how many are stored of all.
    async fn shown(store: &Store, word: &str) -> (usize, u64) {
        let found = store.passages_with_words(word, Place::default(), 1000);
        let passages = store.passages(found.await.unwrap()).await.unwrap();
        let all = "SELECT count(*) FROM document_passages";
        let all = store.read(move |at| sql::one(at, all, [], |row| row.get(0)));
        (passages.len(), all.await.unwrap())
    }

    #[tokio::test]
    async fn a_long_document_is_shown_when_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let (store, file) = one_file(&folder).await;
        let put = |document| store.put_document(file.clone(), document);
        let long = 2 * PART + 3;
        put(document("old", long)).await.unwrap();
        assert_eq!(shown(&store, "old").await, (long, long as u64));
        // A part of the next version, whose reading does not come to its end.
        let (seen, part) = (file.clone(), document("draft", PART).passages);
        let added = store.write(move |change| add(change, &seen, 0, part));
        assert_eq!(added.await.unwrap().unwrap().len(), PART);
        assert_eq!(shown(&store, "draft").await, (0, (long + PART) as u64));
        assert_eq!(shown(&store, "old").await.0, long);
        let like = store.passages_like("minilm", vec![1.0, 0.0], Place::default(), 1000);
        assert_eq!(like.await.unwrap().len(), long);
        put(document("new", long)).await.unwrap();
        assert_eq!(shown(&store, "new").await, (long, long as u64));
        let like = store.passages_like("minilm", vec![1.0, 0.0], Place::default(), 1000);
        assert_eq!(like.await.unwrap().len(), long);
        put(document("short", 1)).await.unwrap();
        assert_eq!(shown(&store, "short").await, (1, 1));
        let why = store.fail_document(file.clone(), "cd".to_owned(), "Why.".to_owned());
        why.await.unwrap();
        assert_eq!(shown(&store, "short").await, (0, 0));
    }

    #[tokio::test]
    async fn a_search_finds_no_less_while_a_document_is_exchanged() {
        let folder = tempfile::tempdir().unwrap();
        let (store, file) = one_file(&folder).await;
        let put = store.put_document(file.clone(), document("an owl at night", 3));
        put.await.unwrap();
        // Shorter passages are better matches.
        let part = document("owl", PART).passages;
        let added = store.write(move |change| add(change, &file, 0, part));
        assert!(added.await.unwrap().is_some());
        let found = store.passages_with_words("owl", Place::default(), 3);
        let found = store.passages(found.await.unwrap()).await.unwrap();
        assert_eq!(found.len(), 3);
    }

    #[tokio::test]
    async fn a_version_that_was_removed_in_part_is_cleared() {
        let folder = tempfile::tempdir().unwrap();
        let (store, file) = one_file(&folder).await;
        let put = store.put_document(file, document("old", 2 * PART));
        put.await.unwrap();
        let next = "UPDATE document_files SET version = version + 1";
        let next = store.write(move |change| sql::run(change, next, []));
        next.await.unwrap();
        assert_eq!(shown(&store, "old").await, (0, 2 * PART as u64));
        store.clear_documents().await.unwrap();
        assert_eq!(shown(&store, "old").await, (0, 0));
    }

    #[tokio::test]
    async fn a_long_document_that_changes_meanwhile_is_not_stored() {
        let folder = tempfile::tempdir().unwrap();
        let (store, mut file) = one_file(&folder).await;
        file.modified = 2;
        let put = store.put_document(file, document("new", 2 * PART));
        put.await.unwrap();
        assert_eq!(shown(&store, "new").await, (0, 0));
    }

    #[tokio::test]
    async fn a_file_that_the_index_has_no_room_for_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (store, first) = one_file(&folder).await;
        let second = WaitingFile {
            id: first.id + 1,
            ..first.clone()
        };
        let put = async |file: &WaitingFile, passages| {
            let document = document("word", passages);
            let put = store.exchange(file.clone(), document, FileState::Indexed, 10);
            put.await.unwrap();
            let id = file.id;
            let stored = store.read(move |at| {
                sql::one(
                    at,
                    "SELECT state, coalesce(notice, ''), sha256, (SELECT count(*) FROM document_passages)
                     FROM document_files WHERE id = ?1",
                    [id],
                    |row| <(String, String, String, u64)>::try_from(row),
                )
            });
            stored.await.unwrap()
        };
        assert_eq!(
            put(&first, 10).await,
            ("indexed".into(), String::new(), "ab".into(), 10)
        );
        let (state, notice, hash, passages) = put(&second, 1).await;
        assert_eq!(
            (state.as_str(), hash.as_str(), passages),
            ("failed", "", 10)
        );
        assert!(
            notice.starts_with("The index is full: it can have 10"),
            "{notice}"
        );
        // Its own earlier passages make room.
        assert_eq!(put(&first, 9).await.3, 9);
        assert_eq!(put(&second, 1).await.3, 10);
        assert_eq!(put(&first, 10).await.3, 1);
    }
}

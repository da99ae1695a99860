//! Documents: sources, files, passages and how they are found.

use crate::support::Fixture;
use tierbar_core::{
    Code,
    documents::{DocumentKind, FileState, vectors},
};
use tierbar_store::{Collection, FileRange, NewDocument, NewPassage, Place, SeenFile, Store};

fn seen(path: &str, modified: i64) -> SeenFile {
    SeenFile {
        path: path.to_owned(),
        size: 10,
        modified,
    }
}

fn passage(text: &str, vector: Option<[f32; 2]>) -> NewPassage {
    NewPassage {
        headings: vec!["Methods".to_owned()],
        page: Some(3),
        text: text.to_owned(),
        vector: vector.map(|vector| vectors::pack(&vector)),
        ..NewPassage::default()
    }
}

fn document(passages: Vec<NewPassage>) -> NewDocument {
    NewDocument {
        sha256: "ab".to_owned(),
        kind: Some(DocumentKind::Pdf),
        title: Some("A paper".to_owned()),
        pages: Some(9),
        embedder: Some("minilm".to_owned()),
        passages,
        ..NewDocument::default()
    }
}

/// Takes an index back to the version before its files had figures.
const WITHOUT_FIGURES: &str = "DROP INDEX document_passages_of_file;
    ALTER TABLE document_passages DROP COLUMN version; ALTER TABLE document_files DROP COLUMN version;
    ALTER TABLE document_sources DROP COLUMN is_removed;
    CREATE UNIQUE INDEX document_passages_of_file ON document_passages (file, place);
    DROP INDEX document_files_in_part; DROP INDEX document_files_with_text;
    DROP TABLE document_sketches; DROP TABLE files_to_sketch;
    ALTER TABLE document_files DROP COLUMN passages; ALTER TABLE document_files DROP COLUMN embedder;
    ALTER TABLE document_files DROP COLUMN embedded; ALTER TABLE document_files DROP COLUMN refused;
    PRAGMA user_version = 27;";

/// A source with one file that waits.
async fn one_file(store: &Store) -> u64 {
    let source = store
        .add_document_source("/d", "Papers", true)
        .await
        .unwrap();
    assert!(
        store
            .sync_documents(source.id, vec![seen("/d/a.pdf", 1)])
            .await
            .unwrap()
    );
    source.id
}

#[tokio::test]
async fn a_file_that_must_wait_lets_others_be_read() {
    let fixture = Fixture::new();
    let store = fixture.store();
    let source = store.add_document_source("/d", "Papers", true).await;
    let files = vec![seen("/d/a.pdf", 1), seen("/d/b.pdf", 1)];
    let synced = store.sync_documents(source.unwrap().id, files).await;
    assert!(synced.unwrap());
    let first = store.next_document().await.unwrap().unwrap();
    let next = store.next_document_after(first.id).await.unwrap().unwrap();
    assert_ne!(first.path, next.path);
    let last = store.next_document_after(next.id).await.unwrap();
    assert_eq!(last, None);
}

async fn texts(store: &Store, words: &str) -> Vec<String> {
    let ids = store
        .passages_with_words(words, Place::default(), 10)
        .await
        .unwrap();
    let passages = store.passages(ids).await.unwrap();
    passages.into_iter().map(|passage| passage.text).collect()
}

#[tokio::test]
async fn passages_are_found_by_words_and_by_vectors() {
    let fixture = Fixture::new();
    let store = fixture.store();
    one_file(&store).await;
    let file = store.next_document().await.unwrap().unwrap();
    let passages = vec![
        passage("Lighthouses are painted every year.", Some([1.0, 0.0])),
        passage("Ships avoid the rocks.", Some([0.6, 0.8])),
        passage("Nothing of it.", None),
    ];
    store
        .put_document(file.clone(), document(passages))
        .await
        .unwrap();
    assert_eq!(store.next_document().await.unwrap(), None);
    let place = Place::default;
    let half = store.passages_like("minilm", vec![0.0, 1.0], place(), 9);
    assert_eq!(half.await.unwrap(), [], "one passage has no vector");
    let unread = store.passages_without_vectors("minilm", 9).await.unwrap();
    assert_eq!(unread.len(), 1);
    let vector = vectors::pack(&[1.0, 0.0]);
    store
        .put_passage_vectors(unread[0].file, "minilm", vec![(unread[0].id, vector)])
        .await
        .unwrap();
    assert!(
        store
            .passages_without_vectors("minilm", 9)
            .await
            .unwrap()
            .is_empty()
    );
    // Endings do not count, and any of the words will do.
    assert_eq!(
        texts(&store, "Who paints a lighthouse?").await,
        ["Lighthouses are painted every year."]
    );
    let like = store
        .passages_like("minilm", vec![0.0, 1.0], place(), 1)
        .await
        .unwrap();
    assert_eq!(like.len(), 1);
    assert!((like[0].1 - 0.8).abs() < 0.01);
    let found = store.passages(vec![like[0].0]).await.unwrap();
    assert_eq!(
        (found[0].text.as_str(), found[0].place()),
        ("Ships avoid the rocks.", "Methods, page 3".to_owned())
    );
    assert_eq!(
        (found[0].title.as_str(), found[0].collection.as_str()),
        ("A paper", "Papers")
    );
    assert_eq!(
        store
            .passages_like("other", vec![0.0, 1.0], place(), 9)
            .await
            .unwrap(),
        []
    );
    let elsewhere = Place {
        collection: Some("Letters".to_owned()),
        file: None,
    };
    assert_eq!(
        store
            .passages_like("minilm", vec![0.0, 1.0], elsewhere.clone(), 9)
            .await
            .unwrap(),
        []
    );
    assert!(
        store
            .passages_with_words("ships", elsewhere, 9)
            .await
            .unwrap()
            .is_empty()
    );
    let sources = store.document_sources(Some("minilm")).await.unwrap();
    assert_eq!((sources[0].indexed, sources[0].passages), (1, 3));
    assert_eq!(
        store
            .passages_without_vectors("other", 9)
            .await
            .unwrap()
            .len(),
        3
    );
}

#[tokio::test]
async fn passages_of_a_half_read_document_are_without_vectors() {
    let fixture = Fixture::new();
    let store = fixture.store();
    let source = one_file(&store).await;
    store
        .sync_documents(source, vec![seen("/d/a.pdf", 1), seen("/d/b.pdf", 1)])
        .await
        .unwrap();
    for last in [Some([1.0, 0.0]), None] {
        let file = store.next_document().await.unwrap().unwrap();
        let passages = vec![passage("One.", Some([1.0, 0.0])), passage("Two.", last)];
        store.put_document(file, document(passages)).await.unwrap();
    }
    for (embedder, expected) in [(Some("minilm"), 2), (Some("other"), 4), (None, 4)] {
        let sources = store.document_sources(embedder).await.unwrap();
        let counted = (sources[0].passages, sources[0].without_vectors);
        assert_eq!(counted, (4, expected), "{embedder:?}");
    }
    let unread = store.passages_without_vectors("minilm", 9).await.unwrap();
    let vectors = vec![(unread[0].id, vectors::pack(&[1.0, 0.0]))];
    let put = store.put_passage_vectors(unread[0].file, "minilm", vectors);
    put.await.unwrap();
    let sources = store.document_sources(Some("minilm")).await.unwrap();
    assert_eq!(sources[0].without_vectors, 0);
}

#[tokio::test]
async fn vectors_of_an_older_index_are_found() {
    let fixture = Fixture::new();
    let store = fixture.store();
    let source = one_file(&store).await;
    let files = ["/d/a.pdf", "/d/b.pdf", "/d/c.pdf"].map(|path| seen(path, 1));
    store.sync_documents(source, files.into()).await.unwrap();
    for refused in [false, true, false] {
        let file = store.next_document().await.unwrap().unwrap();
        let mut passages = vec![
            passage("One.", Some([1.0, 0.0])),
            passage("Two.", Some([-0.8, 0.6])),
        ];
        if refused {
            passages[0].vector = Some(vectors::pack(&[]));
        }
        store.put_document(file, document(passages)).await.unwrap();
    }
    let figures = async |store: &Store| {
        let like = store.passages_like("minilm", vec![1.0, 0.0], Place::default(), 9);
        let like = like.await.unwrap().into_iter().map(|(id, _)| id);
        let sources = store.document_sources(Some("minilm")).await.unwrap();
        let counted = (sources[0].passages, sources[0].without_vectors);
        (like.collect::<Vec<_>>(), counted)
    };
    assert_eq!(figures(&store).await, (vec![1, 5, 2, 4, 6], (6, 1)));
    drop(store);
    let older = rusqlite::Connection::open(fixture.path()).unwrap();
    older.execute_batch(WITHOUT_FIGURES).unwrap();
    // One has vectors of two embedders.
    let mixed = "UPDATE document_vectors SET model = 'other' WHERE passage = 5";
    older.execute_batch(mixed).unwrap();
    drop(older);
    let store = fixture.store();
    assert_eq!(figures(&store).await, (vec![1, 2, 4], (6, 3)));
    let unread = store.passages_without_vectors("minilm", 9).await.unwrap();
    assert_eq!((unread.len(), unread[0].id), (1, 5));
    let vector = vec![(5, vectors::pack(&[1.0, 0.0]))];
    let put = store.put_passage_vectors(unread[0].file, "minilm", vector);
    put.await.unwrap();
    assert_eq!(figures(&store).await, (vec![1, 5, 2, 4, 6], (6, 1)));
}

#[tokio::test]
async fn a_document_has_vectors_of_one_embedder() {
    let fixture = Fixture::new();
    let store = fixture.store();
    one_file(&store).await;
    let file = store.next_document().await.unwrap().unwrap();
    let id = file.id;
    let passages = vec![
        passage("One.", Some([1.0, 0.0])),
        passage("Two.", Some([0.0, 1.0])),
    ];
    store.put_document(file, document(passages)).await.unwrap();
    let put = async |model: &str, passage: u64| {
        let vectors = vec![(passage, vectors::pack(&[1.0, 0.0]))];
        store.put_passage_vectors(id, model, vectors).await.unwrap();
    };
    let found = async |model: &str| {
        let found = store.passages_like(model, vec![1.0, 0.0], Place::default(), 9);
        found.await.unwrap().len()
    };
    let unread = async |model: &str| {
        let unread = store.passages_without_vectors(model, 9).await.unwrap();
        unread
            .into_iter()
            .map(|passage| passage.id)
            .collect::<Vec<_>>()
    };
    assert_eq!((found("minilm").await, unread("minilm").await), (2, vec![]));
    put("other", 1).await;
    assert_eq!((found("minilm").await, found("other").await), (0, 0));
    assert_eq!(
        (unread("minilm").await, unread("other").await),
        (vec![1, 2], vec![2])
    );
    // A vector that is there stays, and is counted once.
    put("other", 1).await;
    assert_eq!(found("other").await, 0);
    put("other", 2).await;
    assert_eq!((found("other").await, unread("other").await), (2, vec![]));
    // Such as one whose document has changed.
    put("other", 99).await;
    assert_eq!(found("other").await, 2);
}

#[tokio::test]
async fn a_changed_file_keeps_its_passages_until_it_is_read_again() {
    let fixture = Fixture::new();
    let store = fixture.store();
    let source = one_file(&store).await;
    let first = store.next_document().await.unwrap().unwrap();
    store
        .put_document(first.clone(), document(vec![passage("old words", None)]))
        .await
        .unwrap();
    assert!(
        !store
            .sync_documents(source, vec![seen("/d/a.pdf", 1)])
            .await
            .unwrap()
    );
    assert!(
        store
            .sync_documents(source, vec![seen("/d/a.pdf", 2)])
            .await
            .unwrap()
    );
    assert_eq!(texts(&store, "old new").await, ["old words"]);
    // What was read before the change is not stored any more.
    store
        .put_document(first, document(vec![passage("stale words", None)]))
        .await
        .unwrap();
    assert_eq!(texts(&store, "words").await, ["old words"]);
    let second = store.next_document().await.unwrap().unwrap();
    assert_eq!(second.sha256, "ab");
    store.keep_document(second.clone()).await.unwrap();
    assert_eq!(store.next_document().await.unwrap(), None);
    assert!(
        store
            .sync_documents(source, vec![seen("/d/a.pdf", 3)])
            .await
            .unwrap()
    );
    let third = store.next_document().await.unwrap().unwrap();
    store
        .put_document(third.clone(), document(vec![passage("new words", None)]))
        .await
        .unwrap();
    assert_eq!(texts(&store, "old new").await, ["new words"]);
    let why = "This PDF is encrypted.".to_owned();
    store
        .fail_document(third, "cd".to_owned(), why.clone())
        .await
        .unwrap();
    let files = store.document_files(source, 0).await.unwrap();
    assert_eq!(
        (files[0].state, files[0].notice.as_ref()),
        (FileState::Failed, Some(&why))
    );
    assert!(texts(&store, "new").await.is_empty());
    assert!(store.sync_documents(source, vec![]).await.unwrap());
    assert!(store.document_files(source, 0).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_file_that_could_not_be_opened_keeps_its_passages() {
    let fixture = Fixture::new();
    let store = fixture.store();
    let source = one_file(&store).await;
    let file = store.next_document().await.unwrap().unwrap();
    let read = document(vec![passage("old words", None)]);
    store.put_document(file, read).await.unwrap();
    let look = |files| store.sync_documents(source, files);
    look(vec![seen("/d/a.pdf", 2)]).await.unwrap();
    let file = store.next_document().await.unwrap().unwrap();
    let why = "It cannot be opened.".to_owned();
    store.fail_document(file, String::new(), why).await.unwrap();
    assert_eq!(texts(&store, "old").await, ["old words"]);
    let kept = store.document_files_in(source, "/d/a.pdf").await.unwrap();
    assert!(!look(kept).await.unwrap(), "it was not seen");
    assert!(look(vec![seen("/d/a.pdf", 2)]).await.unwrap());
    assert!(store.next_document().await.unwrap().is_some());
}

#[tokio::test]
async fn a_passage_is_read_among_its_neighbors() {
    let fixture = Fixture::new();
    let store = fixture.store();
    one_file(&store).await;
    let file = store.next_document().await.unwrap().unwrap();
    let next = NewPassage {
        fresh: "zwölf. ".len(),
        ..passage("zwölf. Then thirteen.", None)
    };
    let passages = vec![passage("Eleven is before zwölf.", None), next];
    store
        .put_document(file.clone(), document(passages))
        .await
        .unwrap();
    let ids = store
        .passages_with_words("eleven", Place::default(), 1)
        .await
        .unwrap();
    let around = store.passages_around(ids[0]).await.unwrap();
    let texts: Vec<_> = around.iter().map(|passage| passage.text.as_str()).collect();
    assert_eq!(texts, ["Eleven is before zwölf.", "Then thirteen."]);
    let whole = store.document_text(file.id).await.unwrap();
    assert_eq!(whole[1].text, "Then thirteen.");
    assert_eq!(
        store.passages_around(999).await.unwrap_err().code,
        Code::NotFound
    );
    assert_eq!(
        store.document_text(999).await.unwrap_err().code,
        Code::NotFound
    );
}

#[tokio::test]
async fn a_source_is_added_once_and_removed_with_all_of_it() {
    let fixture = Fixture::new();
    let store = fixture.store();
    let source = one_file(&store).await;
    for path in ["/d", "/d/a.pdf", "/d/b/c"] {
        let error = store
            .add_document_source(path, "Other", false)
            .await
            .unwrap_err();
        assert_eq!(error.code, Code::Conflict, "{path}");
    }
    store
        .add_document_source("/d2", "Other", true)
        .await
        .unwrap();
    let file = store.next_document().await.unwrap().unwrap();
    store
        .put_document(file, document(vec![passage("words", Some([1.0, 0.0]))]))
        .await
        .unwrap();
    store.remove_document_source(source).await.unwrap();
    assert!(texts(&store, "words").await.is_empty());
    let like = store.passages_like("minilm", vec![1.0, 0.0], Place::default(), 9);
    assert_eq!(like.await.unwrap(), []);
    assert_eq!(
        store.remove_document_source(source).await.unwrap_err().code,
        Code::NotFound
    );
    assert_eq!(store.document_sources(None).await.unwrap().len(), 1);
}

#[tokio::test]
async fn words_of_what_was_removed_leave_the_file() {
    let fixture = Fixture::new();
    let store = fixture.store();
    let source = one_file(&store).await;
    let file = store.next_document().await.unwrap().unwrap();
    let passages = vec![passage("A xylophone.", None), passage("木琴", None)];
    store.put_document(file, document(passages)).await.unwrap();
    store.settle().await.unwrap();
    drop(store);
    let has = |word: &str| {
        let bytes = std::fs::read(fixture.path()).unwrap();
        let word = word.as_bytes();
        bytes.windows(word.len()).any(|part| part == word)
    };
    assert!(has("xylophon") && has("木"));
    // An earlier version's index.
    let older = rusqlite::Connection::open(fixture.path()).unwrap();
    older.execute_batch(WITHOUT_FIGURES).unwrap();
    older
        .execute_batch(
            "DROP TRIGGER passage_counted; DROP TABLE removed_passages;
             INSERT INTO passage_words (passage_words, rank) VALUES ('secure-delete', 1);
             INSERT INTO passage_characters (passage_characters, rank) VALUES ('secure-delete', 1);
             PRAGMA user_version = 26;",
        )
        .unwrap();
    drop(older);
    let store = fixture.store();
    assert!(store.keep_copy().await.unwrap());
    store.remove_document_source(source).await.unwrap();
    assert!(!fixture.folder.path().join("tierbar.copy.db").exists());
    for word in ["xylophon", "木"] {
        assert!(!has(word), "{word}");
    }
}

#[tokio::test]
async fn a_folder_of_many_files_is_recorded_whole() {
    let fixture = Fixture::new();
    let store = fixture.store();
    let source = one_file(&store).await;
    let files = |count: i64| (0..count).map(|number| seen(&format!("/d/{number}"), 1));
    let sync = async |count| {
        let files = files(count).collect();
        let changed = store.sync_documents(source, files).await.unwrap();
        let sources = store.document_sources(None).await.unwrap();
        (changed, sources[0].waiting)
    };
    assert_eq!(sync(2500).await, (true, 2500));
    assert_eq!(sync(2500).await, (false, 2500));
    assert_eq!(sync(7).await, (true, 7));
    let gone = store.sync_documents(99, files(3).collect());
    assert!(!gone.await.unwrap(), "there is no such source");
}

#[tokio::test]
async fn a_folder_has_its_files_as_they_were_seen() {
    let fixture = Fixture::new();
    let store = fixture.store();
    let id = one_file(&store).await;
    let files = ["/d/a.pdf", "/d/ab/c.md", "/d/ab/d/e.md", "/d/abc.md"];
    let files: Vec<_> = files.into_iter().map(|path| seen(path, 7)).collect();
    store.sync_documents(id, files.clone()).await.unwrap();
    let found = store.document_files_in(id, "/d/ab").await.unwrap();
    assert_eq!(found, files[1..3]);
    let found = store.document_files_in(id, "/d/abc.md").await.unwrap();
    assert_eq!(found, files[3..]);
}

#[tokio::test]
async fn a_collection_has_its_files_by_id() {
    let fixture = Fixture::new();
    let store = fixture.store();
    assert_eq!(store.document_collections().await.unwrap(), []);
    let source = store
        .add_document_source("/d", "Papers", true)
        .await
        .unwrap();
    let files = vec![seen("/d/a", 1), seen("/d/b", 1), seen("/d/c", 1)];
    store.sync_documents(source.id, files).await.unwrap();
    store
        .add_document_source("/e", "Letters", true)
        .await
        .unwrap();
    let file = store.next_document().await.unwrap().unwrap();
    store
        .fail_document(file, "ab".to_owned(), "Why.".to_owned())
        .await
        .unwrap();
    let collection = |name: &str, waiting, failed, size_bytes| Collection {
        name: name.to_owned(),
        indexed: 0,
        waiting,
        failed,
        size_bytes,
        added_at: 0,
    };
    let mut collections = store.document_collections().await.unwrap();
    for known in &mut collections {
        let added_at = std::mem::take(&mut known.added_at);
        assert!(added_at > 1_700_000_000, "{known:?}: {added_at}");
    }
    assert_eq!(
        collections,
        [
            collection("Letters", 0, 0, 0),
            collection("Papers", 2, 1, 30)
        ]
    );
    let listed = async |range: FileRange| {
        let files = store.collection_files("Papers".to_owned(), range).await;
        let files = files.unwrap().into_iter();
        let files = files.inspect(|file| assert!(file.added_at > 1_700_000_000, "{file:?}"));
        files.map(|file| file.path).collect::<Vec<_>>()
    };
    let all = FileRange {
        limit: 9,
        ..FileRange::default()
    };
    assert_eq!(listed(all).await, ["/d/a", "/d/b", "/d/c"]);
    let last = FileRange {
        descending: true,
        limit: 1,
        ..FileRange::default()
    };
    assert_eq!(listed(last).await, ["/d/c"]);
    let failed = FileRange {
        state: Some(FileState::Failed),
        ..all
    };
    assert_eq!(listed(failed).await, ["/d/a"]);
    let between = FileRange {
        above: Some(1),
        below: Some(3),
        ..all
    };
    assert_eq!(listed(between).await, ["/d/b"]);
}

#[tokio::test]
async fn files_with_a_notice_are_read_again_for_their_pictures() {
    let fixture = Fixture::new();
    let store = fixture.store();
    let source = one_file(&store).await;
    let file = store.next_document().await.unwrap().unwrap();
    assert!(!file.read_pictures);
    let mut scanned = document(vec![passage("Some words.", None)]);
    scanned.notice = Some("1 of 9 pages is a picture.".to_owned());
    store.put_document(file, scanned).await.unwrap();
    let listed = store.document_sources(None).await.unwrap();
    assert_eq!((listed[0].noticed, listed[0].read_pictures), (1, false));
    assert_eq!(store.next_document().await.unwrap(), None);
    store.set_read_pictures(source, true).await.unwrap();
    let again = store.next_document().await.unwrap().unwrap();
    assert!(again.read_pictures && again.sha256.is_empty());
    // Its passages stay until then.
    assert_eq!(texts(&store, "words").await, ["Some words."]);
    assert!(store.document_sources(None).await.unwrap()[0].read_pictures);
    let none = store.set_read_pictures(99, true).await.unwrap_err();
    assert_eq!(none.code, Code::NotFound);
}

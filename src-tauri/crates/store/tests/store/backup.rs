//! The copy of the file, and files that have lost their beginning.

use crate::support::{Fixture, all_chats};
use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf};
use tierbar_core::Code;
use tierbar_store::{ChatFields, Store};

fn beside(fixture: &Fixture, name: &str) -> PathBuf {
    fixture.folder.path().join(name)
}

async fn with_a_chat(store: &Store) -> String {
    let fields = ChatFields {
        title: Some("Kept".to_owned()),
        ..ChatFields::default()
    };
    store.create_chat(fields).await.unwrap().id
}

async fn titles(store: &Store) -> Vec<String> {
    let chats = all_chats(store).await.into_iter();
    chats.map(|chat| chat.title).collect()
}

#[tokio::test]
async fn a_settled_file_is_whole_without_its_log() {
    let fixture = Fixture::new();
    let store = fixture.store();
    with_a_chat(&store).await;
    let elsewhere = Fixture::new();
    fs::copy(fixture.path(), elsewhere.path()).unwrap();
    assert!(Store::open(&elsewhere.path()).is_err() || titles(&elsewhere.store()).await.is_empty());
    store.settle().await.unwrap();
    let elsewhere = Fixture::new();
    fs::copy(fixture.path(), elsewhere.path()).unwrap();
    assert_eq!(titles(&elsewhere.store()).await, ["Kept"]);
}

#[tokio::test]
async fn a_file_that_was_emptied_is_an_error_that_names_the_copy() {
    for settled in [false, true] {
        let fixture = Fixture::new();
        let store = fixture.store();
        with_a_chat(&store).await;
        assert!(store.keep_copy().await.unwrap());
        assert!(!store.keep_copy().await.unwrap());
        let copy = beside(&fixture, "tierbar.copy.db");
        assert_eq!(
            fs::metadata(&copy).unwrap().permissions().mode() & 0o777,
            0o600
        );
        if settled {
            store.settle().await.unwrap();
        }
        // As after a crash: nothing closes the file.
        std::mem::forget(store);
        fs::write(fixture.path(), "").unwrap();
        let error = Store::open(&fixture.path()).unwrap_err();
        assert_eq!(error.code, Code::Storage);
        assert!(error.message.contains("is empty"), "{error}");
        assert!(
            error
                .hint
                .unwrap()
                .contains("tierbar.copy.db, which is of 2")
        );
        assert_eq!(fs::read(fixture.path()).unwrap(), b"");
        // What the hint says to do.
        for name in ["tierbar.db", "tierbar.db-wal", "tierbar.db-shm"] {
            let _none = fs::remove_file(beside(&fixture, name));
        }
        fs::copy(&copy, fixture.path()).unwrap();
        assert_eq!(titles(&fixture.store()).await, ["Kept"]);
    }
}

#[tokio::test]
async fn an_emptied_file_with_a_log_is_an_error_without_a_copy() {
    let fixture = Fixture::new();
    let store = fixture.store();
    with_a_chat(&store).await;
    std::mem::forget(store);
    let log = fs::read(beside(&fixture, "tierbar.db-wal")).unwrap();
    assert!(!log.is_empty());
    fs::write(fixture.path(), "").unwrap();
    let error = Store::open(&fixture.path()).unwrap_err();
    assert!(
        error
            .hint
            .unwrap()
            .contains("the next start makes a new one")
    );
    assert_eq!(fs::read(beside(&fixture, "tierbar.db-wal")).unwrap(), log);
}

#[tokio::test]
async fn a_damaged_file_is_not_copied_and_its_hint_names_the_copy() {
    let fixture = Fixture::new();
    let store = fixture.store();
    with_a_chat(&store).await;
    store.keep_copy().await.unwrap();
    store.settle().await.unwrap();
    drop(store);
    let copy = beside(&fixture, "tierbar.copy.db");
    let good = fs::read(&copy).unwrap();
    let old = fs::File::options().write(true).open(&copy).unwrap();
    old.set_modified(std::time::UNIX_EPOCH).unwrap();
    let store = fixture.store();
    let mut file = fs::read(fixture.path()).unwrap();
    file[4096..].fill(0x5a);
    fs::write(fixture.path(), file).unwrap();
    assert_eq!(store.keep_copy().await.unwrap_err().code, Code::Storage);
    assert_eq!(fs::read(&copy).unwrap(), good);
    drop(store);
    fs::write(fixture.path(), "no database at all ".repeat(500)).unwrap();
    let error = Store::open(&fixture.path()).unwrap_err();
    assert!(error.hint.unwrap().contains("tierbar.copy.db"));
}

#[tokio::test]
async fn the_copy_goes_with_an_erased_chat() {
    let fixture = Fixture::new();
    let store = fixture.store();
    let id = with_a_chat(&store).await;
    store.keep_copy().await.unwrap();
    // One that is being made.
    fs::write(beside(&fixture, "tierbar.copy.part"), "Kept").unwrap();
    store.delete_chat(&id).await.unwrap();
    fixture.set_deleted_at("2020-01-01T00:00:00.000000Z");
    store.erase_deleted_chats().await.unwrap();
    for copy in ["tierbar.copy.db", "tierbar.copy.part"] {
        assert!(!beside(&fixture, copy).exists(), "{copy}");
    }
    assert!(store.keep_copy().await.unwrap());
    let copy = fs::read(beside(&fixture, "tierbar.copy.db")).unwrap();
    assert!(!copy.windows(4).any(|text| text == b"Kept"));
}

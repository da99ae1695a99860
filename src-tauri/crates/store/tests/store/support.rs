//! A folder with a store's file, for as long as a test runs.

use std::{fs, path::PathBuf};
use tempfile::TempDir;
use tierbar_chats::ChatSummary;
use tierbar_store::{ChatPage, Store};

pub(crate) struct Fixture {
    pub(crate) folder: TempDir,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// With a copy of the database that `tests/fixtures/data-2026-11/README.md` describes.
    pub(crate) fn of_november_2026() -> Self {
        let fixture = Self::new();
        let written = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../../tests/fixtures/data-2026-11/tierbar.db"
        );
        fs::copy(written, fixture.path()).unwrap();
        fixture
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("tierbar.db")
    }

    /// Changes when the deleted chats were deleted.
    pub(crate) fn set_deleted_at(&self, time: &str) {
        let database = rusqlite::Connection::open(self.path()).unwrap();
        database
            .pragma_update_and_check(None, "secure_delete", true, |_| Ok(()))
            .unwrap();
        let sql = "UPDATE chats SET deleted_at = ?1 WHERE deleted_at IS NOT NULL";
        assert!(database.execute(sql, [time]).unwrap() > 0);
    }

    pub(crate) fn store(&self) -> Store {
        Store::open(&self.path()).unwrap()
    }
}

/// All chats in the order of the list.
pub(crate) async fn all_chats(store: &Store) -> Vec<ChatSummary> {
    store.list_page(ChatPage::default()).await.unwrap().0
}

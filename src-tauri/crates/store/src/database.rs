//! The connection: opening, the schema, and one call at a time.

use crate::{
    backup, failure,
    sql::{Failure, Outcome},
    wal,
    wal::LostChanges,
};
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};
use rusqlite_migration::{M, Migrations};
use std::{
    fs::OpenOptions,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tierbar_core::{Code, Error};

/// One entry per version of the schema, oldest first. A released entry never changes.
const MIGRATIONS: &[M<'static>] = &[
    M::up(concat!(
        include_str!("chats.sql"),
        include_str!("messages.sql")
    )),
    M::up(include_str!("minutes.sql")),
    M::up(include_str!("log.sql")),
    M::up(include_str!("queue.sql")),
    M::up(include_str!("keys.sql")),
    M::up(concat!(
        include_str!("savings.sql"),
        include_str!("schedules.sql")
    )),
    M::up(include_str!("message_tree.sql")),
    M::up(include_str!("answer_pieces.sql")),
    M::up(include_str!("sessions.sql")),
    M::up(include_str!("queue_owners.sql")),
    M::up(include_str!("message_experts.sql")),
    M::up(include_str!("chat_context.sql")),
    M::up(include_str!("chat_search.sql")),
    M::up(include_str!("chat_contents.sql")),
    M::up(include_str!("minute_models.sql")),
    M::up(concat!(
        include_str!("answer_times.sql"),
        include_str!("message_characters.sql")
    )),
    M::up(include_str!("documents.sql")),
    M::up(include_str!("grades.sql")),
    M::up(include_str!("ledger.sql")),
    M::up(include_str!("document_pictures.sql")),
    M::up(include_str!("agent_grants.sql")),
    M::up(include_str!("document_times.sql")),
    M::up(include_str!("passage_characters.sql")),
    M::up(include_str!("agent_files.sql")),
    M::up(include_str!("agent_file_modes.sql")),
    M::up(include_str!("message_failures.sql")),
    M::up(include_str!("document_removal.sql")),
    M::up(include_str!("document_figures.sql")),
    M::up(include_str!("document_versions.sql")),
];

/// A backup program may hold the file for a moment.
const BUSY: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct Database {
    path: PathBuf,
    connection: Mutex<Connection>,
    /// What SQLite could not read of the log at the start.
    pub(crate) lost: Option<LostChanges>,
}

impl Database {
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        backup::check_beginning(path)?;
        // Chats are private: the file is created before SQLite would make it readable for all, and SQLite gives its side
        // files the same mode. This open also reports a folder or a missing parent more clearly.
        OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)
            .map_err(|error| failure::of_io(path, &error))?;
        let sqlite = |error: rusqlite::Error| failure::of_sqlite(path, &error);
        let lost = wal::save_lost_changes(path);
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(path, flags).map_err(sqlite)?;
        connection.busy_timeout(BUSY).map_err(sqlite)?;

        // Before anything is written: the pragmas below change a file's header.
        let found: i64 = connection
            .pragma_query_value(None, "user_version", |row| row.get(0))
            .map_err(sqlite)?;
        if usize::try_from(found).map_or(true, |found| found > MIGRATIONS.len()) {
            let (shown, known) = (path.display(), MIGRATIONS.len());
            let message = format!(
                "the chats' file {shown} was written by a newer Tierbar (schema {found}; this one knows {known})"
            );
            return Err(Error::new(Code::Storage, message).hint(
                "update Tierbar, or set TIERBAR_HOME to another folder; the file has been left as it is",
            ));
        }
        configure(&connection).map_err(sqlite)?;
        Migrations::from_slice(MIGRATIONS)
            .to_latest(&mut connection)
            .map_err(|error| match error {
                rusqlite_migration::Error::RusqliteError { err, .. } => sqlite(err),
                other => Error::new(Code::Internal, format!("{}: {other}", path.display())),
            })?;
        Ok(Self {
            path: path.to_owned(),
            connection: Mutex::new(connection),
            lost,
        })
    }

    pub(crate) fn read<T>(
        &self,
        query: impl FnOnce(&Connection) -> Outcome<T>,
    ) -> Result<T, Error> {
        query(&self.lock()).map_err(|failed| self.error(failed))
    }

    /// Runs a change in a transaction: all of it or nothing.
    pub(crate) fn write<T>(
        &self,
        change: impl FnOnce(&Transaction) -> Outcome<T>,
    ) -> Result<T, Error> {
        let mut connection = self.lock();
        let begun = connection.transaction_with_behavior(TransactionBehavior::Immediate);
        let done = begun.map_err(Failure::from).and_then(|transaction| {
            let value = change(&transaction)?;
            transaction.commit()?;
            Ok(value)
        });
        done.map_err(|failed| self.error(failed))
    }

    fn error(&self, failed: Failure) -> Error {
        match failed {
            Failure::Sqlite(error) => failure::of_sqlite(&self.path, &error),
            Failure::Refused(error) => error,
        }
    }

    pub(crate) fn has_log(&self) -> bool {
        std::fs::metadata(wal::path(&self.path)).is_ok_and(|log| log.len() > 0)
    }

    /// Copies the file beside it, at most once a day. Returns whether it did.
    pub(crate) fn keep_copy(&self) -> Result<bool, Error> {
        backup::keep(&self.path)
    }

    /// Takes what was erased out of the log and the copy, too.
    pub(crate) fn forget_erased(&self) -> Result<(), Error> {
        self.checkpoint()?;
        backup::remove(&self.path)
    }

    pub(crate) fn checkpoint(&self) -> Result<(), Error> {
        self.read(|connection| {
            Ok(connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?)
        })
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        // A call that panicked has dropped its transaction, which rolled it back.
        self.connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

fn configure(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
    // A message that was acknowledged survives a power cut; at a chat's pace its sync costs nothing. On macOS, fsync alone
    // leaves data in the disk's own cache (https://sqlite.org/pragma.html#pragma_fullfsync). Elsewhere these two do nothing.
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "fullfsync", true)?;
    connection.pragma_update(None, "checkpoint_fullfsync", true)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update_and_check(None, "secure_delete", true, |_| Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_migrations_apply_to_an_empty_database() {
        assert_eq!(Migrations::from_slice(MIGRATIONS).validate(), Ok(()));
    }

    #[test]
    fn commits_and_checkpoints_reach_the_disk() {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::open(&folder.path().join("tierbar.db")).unwrap();
        for (pragma, value) in [
            ("synchronous", 2),
            ("fullfsync", 1),
            ("checkpoint_fullfsync", 1),
        ] {
            let found: i64 = database
                .lock()
                .pragma_query_value(None, pragma, |row| row.get(0))
                .unwrap();
            assert_eq!(found, value, "{pragma}");
        }
    }

    fn all_chats(connection: &Connection) -> Outcome<Vec<tierbar_chats::ChatSummary>> {
        crate::chats::list_page(connection, &crate::ChatPage::default())
    }

    #[test]
    fn a_full_volume_is_an_error_and_rolls_back() {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::open(&folder.path().join("tierbar.db")).unwrap();
        let fields = crate::ChatFields::default();
        database
            .write(|change| crate::chats::create(change, fields.clone()))
            .unwrap();
        // SQLite's own limit reports what a full volume does.
        let pages: i64 = database
            .lock()
            .pragma_query_value(None, "page_count", |row| row.get(0))
            .unwrap();
        database
            .lock()
            .pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))
            .unwrap();
        let filled = (0..10_000).find_map(|_| {
            let fields = crate::ChatFields {
                title: Some("t".repeat(400)),
                ..crate::ChatFields::default()
            };
            database
                .write(|change| crate::chats::create(change, fields))
                .err()
        });
        let error = filled.unwrap();
        assert_eq!(error.code, Code::Storage);
        assert!(error.message.contains("is full"), "{error}");
        let chats = database.read(all_chats).unwrap();
        assert!(chats.iter().any(|chat| chat.title.is_empty()));
    }

    #[test]
    fn a_failed_change_is_rolled_back() {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::open(&folder.path().join("tierbar.db")).unwrap();
        let failed = database.write(|change| {
            crate::chats::create(change, crate::ChatFields::default())?;
            let orphan = "INSERT INTO messages (chat_id, role) VALUES ('none', 'user')";
            crate::sql::run(change, orphan, [])
        });
        assert_eq!(failed.unwrap_err().code, Code::Internal);
        assert_eq!(database.read(all_chats).unwrap(), []);
    }
}

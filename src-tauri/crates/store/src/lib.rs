//! Chats with the grades of their answers, documents, minutes of readings, the event log, queued requests, API keys, the tokens
//! that tasks saved, what requests took, what agents may do and have changed, and the progress of schedules, in one SQLite file. One file
//! per table; no other crate sees SQLite.

mod agent_files;
mod agent_grants;
mod answer_pieces;
mod attachments;
mod backup;
mod characters;
mod chats;
mod copies;
mod database;
mod documents;
mod failure;
mod grades;
mod keys;
mod ledger;
mod log;
mod messages;
mod minutes;
mod presets;
mod queue;
mod savings;
mod schedules;
mod search;
mod sessions;
mod sql;
mod title;
mod turns;
mod wal;

pub use agent_files::{AGENT_FILES_BYTES, AGENT_FILES_KEPT, AgentFile};
pub use attachments::NewAttachment;
pub use chats::{ChatFields, ChatPage, RESTORABLE};
pub use copies::{AddedChats, ImportedFile};
pub use documents::{
    Collection, FileRange, NewDocument, NewPassage, Place, SeenFile, Unread, WaitingFile,
};
pub use keys::{AddedKey, KeptKey, KeyUse, TokensUsed};
pub use messages::NewMessage;
pub use queue::{
    AddedJob, CanceledJob, Claim, Delivery, Ending, Headers, JobAnswer, JobOutcome, JobRequest,
    NewJob, NextJob, Room,
};
pub use turns::{NewTurn, OpenedTurn, Parent};
pub use wal::damaged_copies;

use database::Database;
use jiff::Timestamp;
use rusqlite::{Connection, Params, Row, Transaction};
use sql::Outcome;
use std::{path::Path, sync::Arc};
use tierbar_chats::{Chat, ChatSummary};
use tierbar_core::{
    Code, Error,
    journal::{Kind, LogEvent},
};
use tierbar_tasks::{
    Task,
    saved::{Costs, TaskSavings},
};
use tokio::{sync::oneshot, task::JoinError};

/// The largest id of a row.
pub const MOST_ID: u64 = i64::MAX.unsigned_abs();

/// A handle on the one connection; clones share it. Calls run one after another on the blocking pool, and a call
/// whose future is dropped still completes.
///
/// Errors of all calls: [`Code::NotFound`] for an id that no chat has, [`Code::BadRequest`] for a value out of
/// bounds, [`Code::PayloadTooLarge`] for a message beyond SQLite's limit of 1 GB, and [`Code::Storage`] with the
/// file's path and what to do.
#[derive(Debug, Clone)]
pub struct Store {
    database: Arc<Database>,
}

impl Store {
    /// Opens the file; creates it (mode 0600) or migrates it to this version's schema if necessary. Changes that a damaged log has lost
    /// are reported in the event log. Blocking.
    ///
    /// # Errors
    /// [`Code::Storage`] if it cannot be created or read, is damaged, or was written by a newer Tierbar; such a file is
    /// left unchanged.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let database = Database::open(path)?;
        let erased = database.write(|change| {
            // Before messages change: what it adds goes with the text that it was added for.
            characters::MESSAGES.index_earlier(change)?;
            characters::PASSAGES.index_earlier(change)?;
            documents::sketch_earlier(change)?;
            messages::end_unfinished(change)?;
            let now = u64::try_from(Timestamp::now().as_second()).unwrap_or(0);
            agent_files::forget_old(change, now)?;
            chats::erase(change)
        })?;
        if let Some(lost) = &database.lost {
            let note = LogEvent::new(Kind::Note, lost.describe());
            database.write(|change| log::append(change, [note]))?;
        }
        if erased > 0 {
            database.forget_erased()?;
        } else if database.lost.is_some() {
            database.checkpoint()?;
        }
        Ok(Self {
            database: Arc::new(database),
        })
    }

    /// Writes all into the file itself, so that it is whole without its side files. At a clean end.
    pub async fn settle(&self) -> Result<(), Error> {
        self.call(Database::checkpoint).await
    }

    /// Copies the file to `tierbar.copy.db` beside it, unless there is a copy of the last 24 hours. Returns whether it did. The copy goes
    /// when chats are erased or documents removed, whose text it has.
    pub async fn keep_copy(&self) -> Result<bool, Error> {
        self.call(Database::keep_copy).await
    }

    /// Returns a page of the list of chats, the pinned ones first, then the last changed first, and how many chats there are.
    ///
    /// # Errors
    /// [`Code::NotFound`] if the chat that the page follows was erased.
    pub async fn list_page(&self, page: ChatPage) -> Result<(Vec<ChatSummary>, u64), Error> {
        self.read(move |connection| {
            let chats = chats::list_page(connection, &page)?;
            Ok((chats, chats::count(connection)?))
        })
        .await
    }

    /// Creates an untitled chat (title `""`) for `auto`, unless the fields set others.
    pub async fn create_chat(&self, fields: ChatFields) -> Result<ChatSummary, Error> {
        let fields = fields.checked()?;
        self.write(move |change| chats::create(change, fields))
            .await
    }

    /// Returns the bytes of a chat's messages; 0 for an unknown chat.
    pub async fn chat_size(&self, id: &str) -> Result<u64, Error> {
        let id = id.to_owned();
        self.read(move |connection| messages::size_of_chat(connection, &id))
            .await
    }

    pub async fn chat(&self, id: &str) -> Result<Chat, Error> {
        let id = id.to_owned();
        self.read(move |connection| {
            Ok(Chat {
                summary: chats::get(connection, &id)?,
                leaf: chats::leaf(connection, &id)?,
                messages: messages::of_chat(connection, &id)?,
            })
        })
        .await
    }

    /// Sets the fields that are given.
    pub async fn update_chat(&self, id: &str, fields: ChatFields) -> Result<ChatSummary, Error> {
        let (id, fields) = (id.to_owned(), fields.checked()?);
        self.write(move |change| {
            if let Some(leaf) = fields.leaf {
                messages::check_chat(change, leaf, &id)?;
            }
            chats::update(change, &id, &fields)
        })
        .await
    }

    /// Hides the chat. It can be restored for [`RESTORABLE`].
    pub async fn delete_chat(&self, id: &str) -> Result<(), Error> {
        let id = id.to_owned();
        self.write(move |change| chats::hide(change, &id)).await
    }

    /// Shows a deleted chat again. One that was not deleted stays as it is.
    pub async fn restore_chat(&self, id: &str) -> Result<ChatSummary, Error> {
        let id = id.to_owned();
        self.write(move |change| chats::restore(change, &id)).await
    }

    /// Removes the chats that can no longer be restored, as each opening does; their text is overwritten in the file.
    pub async fn erase_deleted_chats(&self) -> Result<(), Error> {
        self.call(|database| {
            let erased = database.write(|change| chats::erase(change))?;
            if erased > 0 {
                database.forget_erased()?;
            }
            Ok(())
        })
        .await
    }

    /// Moves what was written lately from SQLite's log into the database: a damaged page of the log would lose all that follows it. To be
    /// called every few seconds.
    pub async fn checkpoint_if_written(&self) -> Result<(), Error> {
        self.call(|database| {
            if database.has_log() {
                database.checkpoint()?;
            }
            Ok(())
        })
        .await
    }

    /// Adds a message at the end of the shown branch. The first user message that has words titles an untitled chat: its first line,
    /// cut to 60 characters at a word's end.
    pub async fn add_message(&self, id: &str, message: NewMessage) -> Result<ChatSummary, Error> {
        message.check()?;
        let id = id.to_owned();
        self.write(move |change| {
            messages::check_room(change, &id, message.size())?;
            chats::touch(change, &id)?;
            let title = title::of_message(message.role, &message.content);
            let parent = messages::parent_for(change, &id, message.role)?;
            let added = messages::add(change, &id, parent, message)?;
            chats::set_leaf(change, &id, added.id)?;
            if let Some(title) = title {
                chats::title_if_untitled(change, &id, &title)?;
            }
            chats::get(change, &id)
        })
        .await
    }

    /// Adds to the tokens that a task used and saved today, by this machine's calendar. Days are kept for a year.
    pub async fn add_spent(&self, task: Task, spent: TaskSavings) -> Result<(), Error> {
        let today = jiff::Zoned::now().date();
        self.write(move |change| savings::add(change, today, task, spent))
            .await
    }

    /// Returns the tokens that tasks used and saved on the last `days` days with any.
    pub async fn costs(&self, days: u32) -> Result<Costs, Error> {
        self.read(move |connection| savings::last_days(connection, days).map(Costs::from_days))
            .await
    }

    /// Returns what a query finds.
    async fn all<T: Send + 'static>(
        &self,
        query: impl AsRef<str> + Send + 'static,
        params: impl Params + Send + 'static,
        read: impl FnMut(&Row) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<Vec<T>, Error> {
        self.read(move |connection| sql::all(connection, query.as_ref(), params, read))
            .await
    }

    /// Makes a change of one statement.
    async fn execute(
        &self,
        statement: &'static str,
        params: impl Params + Send + 'static,
    ) -> Result<(), Error> {
        self.write(move |change| sql::run(change, statement, params).map(drop))
            .await
    }

    async fn read<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> Outcome<T> + Send + 'static,
    ) -> Result<T, Error> {
        self.call(move |database| database.read(query)).await
    }

    /// Runs a change in a transaction: all of it, or nothing if it is refused.
    async fn write<T: Send + 'static>(
        &self,
        change: impl FnOnce(&Transaction) -> Outcome<T> + Send + 'static,
    ) -> Result<T, Error> {
        self.call(move |database| database.write(change)).await
    }

    async fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Database) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let database = Arc::clone(&self.database);
        let (done, mut result) = oneshot::channel();
        // Boxed: tokio's part of a task is compiled once, not for each query.
        let work: Box<dyn FnOnce() + Send> = Box::new(move || drop(done.send(work(&database))));
        let ended = tokio::task::spawn_blocking(work).await;
        result
            .try_recv()
            .unwrap_or_else(|_| Err(unfinished(ended.err())))
    }
}

/// A query that broke off, or that the runtime did not begin since it ends.
fn unfinished(ended: Option<JoinError>) -> Error {
    let (code, why) = match ended {
        Some(ended) if ended.is_cancelled() => (Code::ShuttingDown, format!(": {ended}")),
        ended => (
            Code::Internal,
            ended.map_or_else(String::new, |ended| format!(": {ended}")),
        ),
    };
    Error::new(code, format!("the store did not finish{why}"))
}

fn no_chat(id: &str) -> Error {
    let shown: String = id.chars().take(64).collect();
    Error::new(Code::NotFound, format!("there is no chat \"{shown}\""))
}

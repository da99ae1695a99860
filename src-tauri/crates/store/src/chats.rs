//! The table of chats.

use crate::{
    no_chat,
    sql::{self, Json, Outcome, Word},
};
use jiff::Timestamp;
use rusqlite::{Connection, Row, params};
use serde::Deserialize;
use std::time::Duration;
use tierbar_chats::{
    ChatSummary,
    context::WhenFull,
    settings::{AnswerSettings, Change, ChatSampling},
};
use tierbar_core::{Error, TierId, bad_request};
use uuid::Uuid;

const MAX_TITLE_CHARS: usize = 500;
const MAX_MODEL_CHARS: usize = 500;
const COLUMNS: &str = "id, title, model, created_at, updated_at, when_full, pinned, settings";

/// How long a deleted chat can be restored.
pub const RESTORABLE: Duration = Duration::from_secs(10 * 60);

/// What a client may set of a chat: the bodies of `POST` and `PATCH /tierbar/v1/chats`. A field that is absent or
/// `null` is not set, but for `thinking`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, utoipa::ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ChatFields {
    pub title: Option<String>,
    /// A tier's name, a model's id, or `auto`.
    pub model: Option<String>,
    /// The last message of the branch to show.
    pub leaf: Option<u64>,
    /// What happens once the context does not hold the chat. Default: `refuse`.
    pub when_full: Option<WhenFull>,
    /// Whether the chat is listed before the others. Alone, it is no change of the chat: `updated_at` stays.
    pub pinned: Option<bool>,
    /// The system message of each request; empty for none.
    pub instructions: Option<String>,
    /// Replaces all values that were set. `{}` leaves them to the tier.
    pub sampling: Option<ChatSampling>,
    /// Whether the model thinks before it answers, if it can. `null` sets it to what the tier has.
    #[schema(value_type = Option<bool>)]
    pub thinking: Change<bool>,
}

impl ChatFields {
    /// Whether the chat itself changes, and not only its place in the list.
    fn is_change(&self) -> bool {
        let pinned = Self {
            pinned: self.pinned,
            ..Self::default()
        };
        self.pinned.is_none() || *self != pinned
    }

    pub(crate) fn checked(mut self) -> Result<Self, Error> {
        if let Some(title) = &mut self.title {
            *title = title.trim().to_owned();
            check_length(title, "title", MAX_TITLE_CHARS)?;
        }
        if let Some(model) = &mut self.model {
            *model = model.trim().to_owned();
            check_length(model, "model", MAX_MODEL_CHARS)?;
            if model.is_empty() {
                return Err(
                    bad_request("model is empty").hint("name a tier or a model, or use \"auto\"")
                );
            }
        }
        self.applied(AnswerSettings::default()).check()?;
        Ok(self)
    }

    fn applied(&self, before: AnswerSettings) -> AnswerSettings {
        AnswerSettings {
            instructions: self.instructions.clone().unwrap_or(before.instructions),
            sampling: self.sampling.unwrap_or(before.sampling),
            thinking: self.thinking.apply(before.thinking),
        }
    }
}

/// A part of the list of chats. The default is all of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChatPage {
    /// The id of the chat that the page follows in the list; `None` for the first page.
    pub before: Option<String>,
    pub limit: Option<u32>,
}

fn check_length(text: &str, field: &str, most: usize) -> Result<(), Error> {
    let chars = text.chars().count();
    if chars <= most {
        return Ok(());
    }
    Err(bad_request(format!(
        "{field} has {chars} characters; at most {most} are kept"
    )))
}

/// # Errors
/// `NotFound` if there is no chat that the page could follow.
pub(crate) fn list_page(connection: &Connection, page: &ChatPage) -> Outcome<Vec<ChatSummary>> {
    // A negative limit is none.
    let limit = page.limit.map_or(-1, i64::from);
    let order = "ORDER BY pinned DESC, updated_at DESC, rowid DESC";
    let Some(before) = &page.before else {
        let all = format!("SELECT {COLUMNS} FROM chats WHERE deleted_at IS NULL {order} LIMIT ?1");
        return sql::all(connection, &all, [limit], summary);
    };
    let place: Option<(bool, String, i64)> = sql::first(
        connection,
        "SELECT pinned, updated_at, rowid FROM chats WHERE id = ?1",
        [before],
        |row| row.try_into(),
    )?;
    let (pinned, updated_at, row) = place.ok_or_else(|| no_chat(before))?;
    sql::all(
        connection,
        &format!(
            "SELECT {COLUMNS} FROM chats WHERE deleted_at IS NULL AND (pinned, updated_at, rowid) < (?2, ?3, ?4) {order} LIMIT ?1"
        ),
        params![limit, pinned, updated_at, row],
        summary,
    )
}

pub(crate) fn count(connection: &Connection) -> Outcome<u64> {
    let count = "SELECT count(*) FROM chats WHERE deleted_at IS NULL";
    sql::one(connection, count, [], |row| row.get(0))
}

/// # Errors
/// `NotFound`, also for a deleted chat.
pub(crate) fn get(connection: &Connection, id: &str) -> Outcome<ChatSummary> {
    let chat = find(connection, id)?;
    Ok(chat.ok_or_else(|| no_chat(id))?)
}

pub(crate) fn find(connection: &Connection, id: &str) -> Outcome<Option<ChatSummary>> {
    let select = format!("SELECT {COLUMNS} FROM chats WHERE id = ?1 AND deleted_at IS NULL");
    sql::first(connection, &select, [id], summary)
}

pub(crate) fn create(connection: &Connection, fields: ChatFields) -> Outcome<ChatSummary> {
    let now = now();
    let settings = fields.applied(AnswerSettings::default());
    let chat = ChatSummary {
        id: Uuid::new_v4().to_string(),
        title: fields.title.unwrap_or_default(),
        model: fields.model.unwrap_or_else(|| TierId::AUTO.to_owned()),
        created_at: now.clone(),
        updated_at: now,
        when_full: fields.when_full.unwrap_or_default(),
        settings,
        pinned: fields.pinned.unwrap_or_default(),
        ..ChatSummary::default()
    };
    insert(connection, &chat, None)?;
    Ok(chat)
}

/// Adds a chat with its id and times. `source`: what it was in the program that it comes from.
pub(crate) fn insert(
    connection: &Connection,
    chat: &ChatSummary,
    source: Option<&str>,
) -> Outcome<usize> {
    sql::run(
        connection,
        &format!(
            "INSERT INTO chats ({COLUMNS}, source) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"
        ),
        params![
            chat.id,
            chat.title,
            chat.model,
            chat.created_at,
            chat.updated_at,
            Word(chat.when_full),
            chat.pinned,
            Json(&chat.settings),
            source,
        ],
    )
}

/// Returns the id of the chat that an earlier import has brought from this source, or of the chat itself if it is here still.
pub(crate) fn of_source(connection: &Connection, source: &str) -> Outcome<Option<String>> {
    if let Some(id) = source.strip_prefix("tierbar:")
        && find(connection, id)?.is_some()
    {
        return Ok(Some(id.to_owned()));
    }
    let select = "SELECT id FROM chats WHERE source = ?1 AND deleted_at IS NULL";
    sql::first(connection, select, [source], |row| row.get(0))
}

/// # Errors
/// `NotFound` for an unknown chat.
pub(crate) fn update(
    connection: &Connection,
    id: &str,
    fields: &ChatFields,
) -> Outcome<ChatSummary> {
    let chat = get(connection, id)?;
    sql::run(
        connection,
        "UPDATE chats SET title = coalesce(?2, title), model = coalesce(?3, model), leaf = coalesce(?4, leaf),
         when_full = coalesce(?5, when_full), pinned = coalesce(?6, pinned), settings = ?7,
         updated_at = coalesce(?8, updated_at)
         WHERE id = ?1 AND deleted_at IS NULL",
        params![
            id,
            fields.title,
            fields.model,
            fields.leaf,
            fields.when_full.map(Word),
            fields.pinned,
            Json(fields.applied(chat.settings)),
            fields.is_change().then(now),
        ],
    )?;
    get(connection, id)
}

/// Hides a chat until it is restored or erased.
///
/// # Errors
/// `NotFound` for an unknown chat.
pub(crate) fn hide(connection: &Connection, id: &str) -> Outcome<()> {
    set_time(connection, id, "deleted_at")
}

/// Shows a deleted chat again, if that was not too long ago.
pub(crate) fn restore(connection: &Connection, id: &str) -> Outcome<ChatSummary> {
    sql::run(
        connection,
        "UPDATE chats SET deleted_at = NULL WHERE id = ?1 AND deleted_at > ?2",
        params![id, to_stored_time(Timestamp::now() - RESTORABLE)],
    )?;
    let restored = find(connection, id)?;
    Ok(restored.ok_or_else(|| {
        let minutes = RESTORABLE.as_secs() / 60;
        no_chat(id).hint(format!(
            "a deleted chat can be restored for {minutes} minutes"
        ))
    })?)
}

/// Removes the deleted chats that can no longer be restored, with their messages. Returns how many there were.
pub(crate) fn erase(connection: &Connection) -> Outcome<usize> {
    let now = Timestamp::now();
    sql::run(
        connection,
        // Also those that were deleted before the clock was set back: they would wait until it is right again.
        "DELETE FROM chats WHERE deleted_at <= ?1 OR deleted_at > ?2",
        [to_stored_time(now - RESTORABLE), to_stored_time(now)],
    )
}

/// Returns the last message of the shown branch; `None` in an empty chat.
pub(crate) fn leaf(connection: &Connection, id: &str) -> Outcome<Option<u64>> {
    let select = "SELECT leaf FROM chats WHERE id = ?1";
    let found = sql::first(connection, select, [id], |row| row.get(0))?;
    Ok(found.flatten())
}

pub(crate) fn set_leaf(connection: &Connection, id: &str, leaf: u64) -> Outcome<usize> {
    let update = "UPDATE chats SET leaf = ?2 WHERE id = ?1";
    sql::run(connection, update, params![id, leaf])
}

/// Marks the chat as changed now.
///
/// # Errors
/// `NotFound` for an unknown chat.
pub(crate) fn touch(connection: &Connection, id: &str) -> Outcome<()> {
    set_time(connection, id, "updated_at")
}

fn set_time(connection: &Connection, id: &str, column: &str) -> Outcome<()> {
    let update = format!("UPDATE chats SET {column} = ?2 WHERE id = ?1 AND deleted_at IS NULL");
    match sql::run(connection, &update, params![id, now()])? {
        0 => Err(no_chat(id).into()),
        _ => Ok(()),
    }
}

pub(crate) fn title_if_untitled(connection: &Connection, id: &str, title: &str) -> Outcome<usize> {
    let update = "UPDATE chats SET title = ?2 WHERE id = ?1 AND title = ''";
    sql::run(connection, update, params![id, title])
}

fn summary(row: &Row) -> rusqlite::Result<ChatSummary> {
    Ok(ChatSummary {
        id: row.get(0)?,
        title: row.get(1)?,
        model: row.get(2)?,
        created_at: row.get(3)?,
        updated_at: row.get(4)?,
        when_full: row.get::<_, Word<WhenFull>>(5)?.0,
        pinned: row.get(6)?,
        settings: row.get::<_, Json<_>>(7)?.0,
        turn: None,
        found: None,
    })
}

pub(crate) fn now() -> String {
    to_stored_time(Timestamp::now())
}

/// A fixed number of decimals, so that times sort as text.
pub(crate) fn to_stored_time(time: Timestamp) -> String {
    format!("{time:.6}")
}

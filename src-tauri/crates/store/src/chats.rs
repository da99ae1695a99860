//! The table of chats.

use crate::{
    json::{of_json, to_json},
    word::Word,
};
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::Deserialize;
use tierbar_core::{
    Code, Error, TierId,
    chat::{
        ChatSummary,
        context::WhenFull,
        settings::{AnswerSettings, Change, ChatSampling},
    },
};
use uuid::Uuid;

const MAX_TITLE_CHARS: usize = 500;
const MAX_MODEL_CHARS: usize = 500;
const COLUMNS: &str = "id, title, model, created_at, updated_at, when_full, settings";

/// What a client may set of a chat: the bodies of `POST` and `PATCH /tierbar/v1/chats`. A field that is absent or
/// `null` is not set, but for `thinking`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, utoipa::ToSchema)]
#[serde(default)]
pub struct ChatFields {
    pub title: Option<String>,
    /// A tier's name, a model's id, or `auto`.
    pub model: Option<String>,
    /// The last message of the branch to show.
    pub leaf: Option<u64>,
    /// What happens once the context does not hold the chat. Default: `refuse`.
    pub when_full: Option<WhenFull>,
    /// The system message of each request; empty for none.
    pub instructions: Option<String>,
    /// Replaces all values that were set. `{}` leaves them to the tier.
    pub sampling: Option<ChatSampling>,
    /// Whether the model thinks before it answers, if it can. `null` sets it to what the tier has.
    #[schema(value_type = Option<bool>)]
    pub thinking: Change<bool>,
}

impl ChatFields {
    pub(crate) fn checked(mut self) -> Result<Self, Error> {
        if let Some(title) = &mut self.title {
            *title = title.trim().to_owned();
            within(title, "title", MAX_TITLE_CHARS)?;
        }
        if let Some(model) = &mut self.model {
            *model = model.trim().to_owned();
            within(model, "model", MAX_MODEL_CHARS)?;
            if model.is_empty() {
                return Err(Error::new(Code::BadRequest, "model is empty")
                    .hint("name a tier or a model, or use \"auto\""));
            }
        }
        self.applied(AnswerSettings::default()).check()?;
        Ok(self)
    }

    /// Returns a chat's settings after this change.
    fn applied(&self, before: AnswerSettings) -> AnswerSettings {
        AnswerSettings {
            instructions: self.instructions.clone().unwrap_or(before.instructions),
            sampling: self.sampling.unwrap_or(before.sampling),
            thinking: self.thinking.of(before.thinking),
        }
    }
}

fn within(text: &str, field: &str, most: usize) -> Result<(), Error> {
    let chars = text.chars().count();
    if chars <= most {
        return Ok(());
    }
    Err(Error::new(
        Code::BadRequest,
        format!("{field} has {chars} characters; at most {most} are kept"),
    ))
}

pub(crate) fn list(connection: &Connection) -> rusqlite::Result<Vec<ChatSummary>> {
    connection
        .prepare_cached(&format!(
            "SELECT {COLUMNS} FROM chats ORDER BY updated_at DESC, rowid DESC"
        ))?
        .query_map([], summary)?
        .collect()
}

pub(crate) fn find(connection: &Connection, id: &str) -> rusqlite::Result<Option<ChatSummary>> {
    connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM chats WHERE id = ?1"))?
        .query_row([id], summary)
        .optional()
}

pub(crate) fn create(connection: &Connection, fields: ChatFields) -> rusqlite::Result<ChatSummary> {
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
        turn: None,
    };
    connection
        .prepare_cached(&format!(
            "INSERT INTO chats ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"
        ))?
        .execute(params![
            chat.id,
            chat.title,
            chat.model,
            chat.created_at,
            chat.updated_at,
            Word(chat.when_full),
            to_json(&chat.settings)?,
        ])?;
    Ok(chat)
}

pub(crate) fn update(
    connection: &Connection,
    id: &str,
    fields: &ChatFields,
) -> rusqlite::Result<Option<ChatSummary>> {
    let Some(chat) = find(connection, id)? else {
        return Ok(None);
    };
    connection
        .prepare_cached(
            "UPDATE chats SET title = coalesce(?2, title), model = coalesce(?3, model), leaf = coalesce(?4, leaf),
             when_full = coalesce(?5, when_full), updated_at = ?6, settings = ?7 WHERE id = ?1",
        )?
        .execute(params![
            id,
            fields.title,
            fields.model,
            fields.leaf,
            fields.when_full.map(Word),
            now(),
            to_json(&fields.applied(chat.settings))?,
        ])?;
    find(connection, id)
}

/// Deletes a chat with its messages; returns whether it existed.
pub(crate) fn delete(connection: &Connection, id: &str) -> rusqlite::Result<bool> {
    Ok(connection
        .prepare_cached("DELETE FROM chats WHERE id = ?1")?
        .execute([id])?
        > 0)
}

/// Returns the last message of the shown branch; `None` in an empty chat.
pub(crate) fn leaf(connection: &Connection, id: &str) -> rusqlite::Result<Option<u64>> {
    let found = connection
        .prepare_cached("SELECT leaf FROM chats WHERE id = ?1")?
        .query_row([id], |row| row.get(0))
        .optional()?;
    Ok(found.flatten())
}

pub(crate) fn set_leaf(connection: &Connection, id: &str, leaf: u64) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE chats SET leaf = ?2 WHERE id = ?1")?
        .execute(params![id, leaf])?;
    Ok(())
}

/// Marks the chat as changed now; returns whether it exists.
pub(crate) fn touch(connection: &Connection, id: &str) -> rusqlite::Result<bool> {
    let changed = connection
        .prepare_cached("UPDATE chats SET updated_at = ?2 WHERE id = ?1")?
        .execute(params![id, now()])?;
    Ok(changed > 0)
}

pub(crate) fn title_if_untitled(
    connection: &Connection,
    id: &str,
    title: &str,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE chats SET title = ?2 WHERE id = ?1 AND title = ''")?
        .execute(params![id, title])?;
    Ok(())
}

fn summary(row: &Row) -> rusqlite::Result<ChatSummary> {
    let settings: String = row.get(6)?;
    Ok(ChatSummary {
        id: row.get(0)?,
        title: row.get(1)?,
        model: row.get(2)?,
        created_at: row.get(3)?,
        updated_at: row.get(4)?,
        when_full: row.get::<_, Word<WhenFull>>(5)?.0,
        settings: of_json(6, &settings)?,
        turn: None,
    })
}

/// A fixed number of decimals, so that times sort as text.
fn now() -> String {
    format!("{:.6}", Timestamp::now())
}

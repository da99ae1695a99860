//! The table of messages, each chat's a tree.

use crate::{
    answer_pieces, characters, grades,
    json::{of_json, optional, to_json},
    word::Word,
};
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::Deserialize;
use std::{borrow::Cow, collections::HashMap};
use tierbar_chats::{
    AnswerFacts, ChatMessage, Finish, Part, Role, context::ContextOmission, text_parts,
};
use tierbar_core::{Code, Error};

/// The most that a chat takes when a message is added: a chat is read, shown and sent to a model as a whole.
pub(crate) const CHAT_BYTES: u64 = 16 << 20;
const COLUMNS: &str = "id, parent, role, parts, tier, model, why, instead_of, finish, \
                       decode_tokens_per_second, time_to_first_token_ms, experts, context, left_out, times";

/// A message that a client adds at the end of the shown branch: the body of `POST /tierbar/v1/chats/{id}/messages`.
#[derive(Debug, Clone, PartialEq, Deserialize, utoipa::ToSchema)]
pub struct NewMessage {
    pub role: Role,
    pub content: String,
    /// What stands before the text: reasoning, calls of tools with their results, and sources. Files come with turns.
    #[serde(default)]
    pub parts: Vec<Part>,
    #[serde(flatten)]
    pub answer: AnswerFacts,
}

impl NewMessage {
    /// The bytes of its texts.
    pub(crate) fn size(&self) -> usize {
        let AnswerFacts {
            tier,
            model,
            why,
            instead_of,
            ..
        } = &self.answer;
        let facts = [tier, model, why, instead_of];
        let facts = facts.into_iter().flatten().map(String::len).sum::<usize>();
        self.content.len() + facts + self.parts.iter().map(text_size).sum::<usize>()
    }

    /// # Errors
    /// `BadRequest` for a file, whose bytes are not here.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.parts.iter().all(|part| part.file().is_none()) {
            return Ok(());
        }
        let message = "a message that is added has no files";
        Err(Error::new(Code::BadRequest, message).hint("send them with a turn"))
    }
}

/// The bytes of a part's texts.
pub(crate) fn text_size(part: &Part) -> usize {
    match part {
        Part::Text { text } | Part::Reasoning { text } | Part::ToolResult { text, .. } => {
            text.len()
        }
        Part::ToolCall {
            name, arguments, ..
        } => name.len() + arguments.len(),
        Part::Sources { sources } => {
            let sizes = sources.iter();
            sizes
                .map(|source| source.title.len() + source.url.len())
                .sum()
        }
        Part::Image { .. } | Part::Audio { .. } | Part::File { .. } => 0,
    }
}

/// Adds a client's message below `parent` and returns it.
pub(crate) fn add(
    connection: &Connection,
    chat: &str,
    parent: Option<u64>,
    message: NewMessage,
) -> rusqlite::Result<ChatMessage> {
    let NewMessage {
        role,
        content,
        mut parts,
        answer,
    } = message;
    parts.extend(text_parts(content));
    insert(connection, chat, parent, role, parts, answer, None)
}

/// Adds messages that another chat or a file has, parents before their children. `ids`: of those of them that are here, by the ids they
/// have there. Returns these ids with the new ones.
pub(crate) fn copy(
    connection: &Connection,
    chat: &str,
    messages: Vec<ChatMessage>,
    mut ids: HashMap<u64, u64>,
) -> rusqlite::Result<HashMap<u64, u64>> {
    for message in messages {
        let ChatMessage {
            id,
            parent,
            role,
            parts,
            mut answer,
        } = message;
        let parent = parent.and_then(|parent| ids.get(&parent).copied());
        // A summary names the last message that it has.
        answer.left_out = answer.left_out.and_then(|left| {
            let through = ids.get(&left.through).copied()?;
            Some(ContextOmission { through, ..left })
        });
        let added = insert(connection, chat, parent, role, parts, answer, None)?;
        ids.insert(id, added.id);
    }
    Ok(ids)
}

/// Adds a message below `parent` and returns it. `turn`: what writes it, if it is an answer of one.
pub(crate) fn insert(
    connection: &Connection,
    chat: &str,
    parent: Option<u64>,
    role: Role,
    parts: Vec<Part>,
    mut answer: AnswerFacts,
    turn: Option<&str>,
) -> rusqlite::Result<ChatMessage> {
    // A grade is given to a message, and does not go with its copies.
    answer.grade = None;
    connection
        .prepare_cached(
            "INSERT INTO messages (chat_id, parent, role, parts, tier, model, why, instead_of, finish,
             decode_tokens_per_second, time_to_first_token_ms, turn, experts, context, left_out, times)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)",
        )?
        .execute(params![
            chat,
            parent,
            Word(role),
            to_json(&parts)?,
            answer.tier,
            answer.model,
            answer.why,
            answer.instead_of,
            answer.finish.map(Word),
            answer.decode_tokens_per_second,
            answer.time_to_first_token_ms,
            turn,
            answer.experts.map(|reads| to_json(&reads)).transpose()?,
            answer.context.map(|used| to_json(&used)).transpose()?,
            answer.left_out.as_ref().map(to_json).transpose()?,
            answer.times.map(|times| to_json(&times)).transpose()?,
        ])?;
    // SQLite's row ids begin at 1.
    let id = u64::try_from(connection.last_insert_rowid()).unwrap_or_default();
    index(connection, id, &parts)?;
    Ok(ChatMessage {
        id,
        parent,
        role,
        parts,
        answer,
    })
}

/// Adds the words of a message to the indexes of the search. The database removes them with the message, and when its parts are written.
fn index(connection: &Connection, id: u64, parts: &[Part]) -> rusqlite::Result<()> {
    let texts: Vec<&str> = parts
        .iter()
        .filter_map(|part| match part {
            Part::Text { text } if !text.is_empty() => Some(text.as_str()),
            _ => None,
        })
        .collect();
    // Nearly every message has one text, which is not copied.
    let text = match texts.as_slice() {
        [] => return Ok(()),
        [text] => Cow::Borrowed(*text),
        texts => Cow::Owned(texts.concat()),
    };
    connection
        .prepare_cached("INSERT INTO message_words (rowid, text) VALUES (?1, ?2)")?
        .execute(params![id, text])?;
    characters::MESSAGES.index(connection, id, &[&text])
}

/// The bytes of a chat's messages: of their texts, and of what each takes in memory besides.
pub(crate) fn size_of_chat(connection: &Connection, chat: &str) -> rusqlite::Result<u64> {
    connection
        .prepare_cached(
            "SELECT (SELECT coalesce(sum(octet_length(parts) + coalesce(octet_length(tier), 0)
                + coalesce(octet_length(model), 0) + coalesce(octet_length(why), 0)
                + coalesce(octet_length(instead_of), 0) + coalesce(octet_length(left_out), 0) + 512), 0) FROM messages WHERE chat_id = ?1)
             + (SELECT coalesce(sum(octet_length(part)), 0) FROM answer_pieces
                JOIN messages ON messages.id = message WHERE chat_id = ?1)",
        )?
        .query_row([chat], |row| row.get(0))
}

/// Checks that a chat has room for a message of so many bytes.
///
/// # Errors
/// `PayloadTooLarge`. The outer result is the database's.
pub(crate) fn check_room(
    connection: &Connection,
    chat: &str,
    more: usize,
) -> rusqlite::Result<Result<(), Error>> {
    let size = size_of_chat(connection, chat)?.saturating_add(more as u64);
    if size <= CHAT_BYTES {
        return Ok(Ok(()));
    }
    let message = format!(
        "the chat would take {} MiB and can take {} MiB",
        size.div_ceil(1 << 20),
        CHAT_BYTES >> 20
    );
    let error = Error::new(Code::PayloadTooLarge, message);
    Ok(Err(error.hint("begin a new chat, or send less")))
}

/// Oldest first.
pub(crate) fn of_chat(connection: &Connection, chat: &str) -> rusqlite::Result<Vec<ChatMessage>> {
    let mut messages = of_chat_without_grades(connection, chat)?;
    let mut grades = grades::of_chat(connection, chat)?;
    for message in &mut messages {
        message.answer.grade = grades.remove(&message.id);
    }
    Ok(messages)
}

/// As [`of_chat`], for a prompt or a copy, which have no grades.
pub(crate) fn of_chat_without_grades(
    connection: &Connection,
    chat: &str,
) -> rusqlite::Result<Vec<ChatMessage>> {
    let mut messages: Vec<ChatMessage> = connection
        .prepare_cached(&format!(
            "SELECT {COLUMNS} FROM messages WHERE chat_id = ?1 ORDER BY id"
        ))?
        .query_map([chat], message)?
        .collect::<rusqlite::Result<_>>()?;
    let is_written = |message: &&mut ChatMessage| {
        message.role == Role::Assistant && message.answer.finish.is_none()
    };
    for message in messages.iter_mut().filter(is_written) {
        let parts = answer_pieces::join_pieces(connection, message.id)?;
        if !parts.is_empty() {
            message.parts = parts;
        }
    }
    Ok(messages)
}

/// Where a message at the end of the shown branch belongs: an answer after an answer stands beside it.
pub(crate) fn parent_for(
    connection: &Connection,
    chat: &str,
    role: Role,
) -> rusqlite::Result<Option<u64>> {
    let leaf: Option<(u64, Option<u64>, Word<Role>)> = connection
        .prepare_cached(
            "SELECT messages.id, parent, role FROM messages JOIN chats ON leaf = messages.id WHERE chats.id = ?1",
        )?
        .query_row([chat], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    Ok(
        leaf.and_then(|(id, parent, Word(last))| match (last, role) {
            (Role::Assistant, Role::Assistant) => parent,
            _ => Some(id),
        }),
    )
}

pub(crate) fn is_of_chat(connection: &Connection, id: u64, chat: &str) -> rusqlite::Result<bool> {
    // A number beyond SQLite's is no message's.
    let Ok(id) = i64::try_from(id) else {
        return Ok(false);
    };
    connection
        .prepare_cached("SELECT 1 FROM messages WHERE id = ?1 AND chat_id = ?2")?
        .exists(params![id, chat])
}

/// The message that a turn writes; `None` if it is gone with its chat. Its number may be another message's by then.
pub(crate) fn written_by(connection: &Connection, turn: &str) -> rusqlite::Result<Option<u64>> {
    connection
        .prepare_cached("SELECT id FROM messages WHERE turn = ?1")?
        .query_row([turn], |row| row.get(0))
        .optional()
}

/// Whether a turn writes this message now.
pub(crate) fn is_being_written(connection: &Connection, id: u64) -> rusqlite::Result<bool> {
    connection
        .prepare_cached(
            "SELECT 1 FROM messages WHERE id = ?1 AND turn IS NOT NULL AND finish IS NULL",
        )?
        .exists([id])
}

/// Adds what has arrived of an answer to it. It may be gone with its chat.
pub(crate) fn append(
    connection: &Connection,
    id: u64,
    pieces: &[Part],
    answer: &AnswerFacts,
) -> rusqlite::Result<()> {
    let found = connection
        .prepare_cached(
            "UPDATE messages SET tier = ?2, model = ?3, why = ?4, instead_of = ?5, time_to_first_token_ms = ?6,
             times = ?7 WHERE id = ?1",
        )?
        .execute(params![
            id,
            answer.tier,
            answer.model,
            answer.why,
            answer.instead_of,
            answer.time_to_first_token_ms,
            answer.times.map(|times| to_json(&times)).transpose()?,
        ])?;
    if found > 0 {
        answer_pieces::append(connection, id, pieces)?;
    }
    Ok(())
}

/// Has a turn carry an answer on: it is unfinished again and without its grade, and its parts are the first of its pieces.
pub(crate) fn reopen(
    connection: &Connection,
    answer: &ChatMessage,
    turn: &str,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE messages SET finish = NULL, turn = ?2 WHERE id = ?1")?
        .execute(params![answer.id, turn])?;
    grades::remove(connection, answer.id)?;
    answer_pieces::append(connection, answer.id, &answer.parts)
}

/// Writes an answer in place of its pieces; with `answer.finish` it is whole. The message; `None` if it is gone with its chat.
pub(crate) fn write(
    connection: &Connection,
    id: u64,
    parts: &[Part],
    answer: &AnswerFacts,
) -> rusqlite::Result<Option<ChatMessage>> {
    let written = connection
        .prepare_cached(
            "UPDATE messages SET parts = ?2, tier = ?3, model = ?4, why = ?5, instead_of = ?6, finish = ?7,
             decode_tokens_per_second = ?8, time_to_first_token_ms = ?9, experts = ?10, context = ?11, left_out = ?12, times = ?13
             WHERE id = ?1",
        )?
        .execute(params![
            id,
            to_json(&parts)?,
            answer.tier,
            answer.model,
            answer.why,
            answer.instead_of,
            answer.finish.map(Word),
            answer.decode_tokens_per_second,
            answer.time_to_first_token_ms,
            answer.experts.map(|reads| to_json(&reads)).transpose()?,
            answer.context.map(|used| to_json(&used)).transpose()?,
            answer.left_out.as_ref().map(to_json).transpose()?,
            answer.times.map(|times| to_json(&times)).transpose()?,
        ])?;
    if written > 0 {
        index(connection, id, parts)?;
    }
    answer_pieces::remove(connection, id)?;
    connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM messages WHERE id = ?1"))?
        .query_row([id], message)
        .optional()
}

/// The message that a turn of this chat has written, once it is whole.
pub(crate) fn of_turn(
    connection: &Connection,
    chat: &str,
    turn: &str,
) -> rusqlite::Result<Option<ChatMessage>> {
    connection
        .prepare_cached(&format!(
            "SELECT {COLUMNS} FROM messages WHERE turn = ?1 AND chat_id = ?2 AND finish IS NOT NULL
             AND chat_id IN (SELECT id FROM chats WHERE deleted_at IS NULL)"
        ))?
        .query_row([turn, chat], message)
        .optional()
}

/// Removes an answer of which nothing has arrived. Its question is the shown branch's last message again.
pub(crate) fn discard(connection: &Connection, id: u64) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "UPDATE chats SET leaf = (SELECT parent FROM messages WHERE id = ?1) WHERE leaf = ?1",
        )?
        .execute([id])?;
    // What a program has added behind it stays in the branch.
    connection
        .prepare_cached(
            "UPDATE messages SET parent = (SELECT parent FROM messages WHERE id = ?1) WHERE parent = ?1",
        )?
        .execute([id])?;
    connection
        .prepare_cached("DELETE FROM messages WHERE id = ?1")?
        .execute([id])?;
    Ok(())
}

/// Ends the answers of a host that did not come to their end: what had arrived is kept.
pub(crate) fn end_unfinished(connection: &Connection) -> rusqlite::Result<()> {
    let pieced: Vec<u64> = connection
        .prepare("SELECT DISTINCT message FROM answer_pieces")?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    for id in pieced {
        let parts = answer_pieces::join_pieces(connection, id)?;
        connection.execute(
            "UPDATE messages SET parts = ?2 WHERE id = ?1",
            params![id, to_json(&parts)?],
        )?;
        index(connection, id, &parts)?;
        answer_pieces::remove(connection, id)?;
    }
    let empty: Vec<u64> = connection
        .prepare(
            "SELECT id FROM messages WHERE turn IS NOT NULL AND finish IS NULL AND parts = '[]'",
        )?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    for id in empty {
        discard(connection, id)?;
    }
    connection.execute(
        "UPDATE messages SET finish = ?1 WHERE turn IS NOT NULL AND finish IS NULL",
        [Word(Finish::Error)],
    )?;
    Ok(())
}

fn message(row: &Row) -> rusqlite::Result<ChatMessage> {
    let parts: String = row.get(3)?;
    let parts = of_json(3, &parts)?;
    Ok(ChatMessage {
        id: row.get(0)?,
        parent: row.get(1)?,
        role: row.get::<_, Word<Role>>(2)?.0,
        parts,
        answer: AnswerFacts {
            tier: row.get(4)?,
            model: row.get(5)?,
            why: row.get(6)?,
            instead_of: row.get(7)?,
            finish: row.get::<_, Option<Word<Finish>>>(8)?.map(|word| word.0),
            decode_tokens_per_second: row.get(9)?,
            time_to_first_token_ms: row.get(10)?,
            experts: optional(row, 11)?,
            context: optional(row, 12)?,
            left_out: optional(row, 13)?,
            times: optional(row, 14)?,
            grade: None,
        },
    })
}

//! The table of messages, each chat's a tree.

use crate::{
    answer_pieces, characters, grades,
    sql::{self, Json, Outcome, Word},
};
use rusqlite::{Connection, Row, params};
use serde::{Deserialize, de::DeserializeOwned};
use std::{borrow::Cow, collections::HashMap};
use tierbar_chats::{
    AnswerFacts, ChatMessage, Finish, Part, Role, TurnFailure, context::ContextOmission, text_parts,
};
use tierbar_core::{Code, Error, bad_request};

/// The most that a chat takes when a message is added: a chat is read, shown and sent to a model as a whole.
pub(crate) const CHAT_BYTES: u64 = 16 << 20;
/// What to do if a chat has no room.
pub(crate) const IN_ANOTHER: &str = "begin a new chat, or send less";
const COLUMNS: &str = "id, parent, role, parts, tier, model, why, instead_of, finish, \
                       decode_tokens_per_second, time_to_first_token_ms, experts, context, left_out, times, failure";

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
        let answer = &self.answer;
        let facts = [&answer.tier, &answer.model, &answer.why, &answer.instead_of];
        let facts = facts.into_iter().flatten().map(String::len).sum::<usize>();
        self.content.len() + facts + self.parts.iter().map(Part::text_size).sum::<usize>()
    }

    /// # Errors
    /// `BadRequest` for a file, whose bytes are not here.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.parts.iter().all(|part| part.file().is_none()) {
            return Ok(());
        }
        let message = "a message that is added has no files";
        Err(bad_request(message).hint("send them with a turn"))
    }
}

/// Adds a client's message below `parent` and returns it.
pub(crate) fn add(
    connection: &Connection,
    chat: &str,
    parent: Option<u64>,
    message: NewMessage,
) -> Outcome<ChatMessage> {
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
) -> Outcome<HashMap<u64, u64>> {
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
) -> Outcome<ChatMessage> {
    // These are of one message, and do not go with its copies.
    answer.grade = None;
    answer.failure = None;
    sql::run(
        connection,
        "INSERT INTO messages (chat_id, parent, role, parts, tier, model, why, instead_of, finish,
         decode_tokens_per_second, time_to_first_token_ms, turn, experts, context, left_out, times, failure)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)",
        params![
            chat,
            parent,
            Word(role),
            Json(&parts),
            answer.tier,
            answer.model,
            answer.why,
            answer.instead_of,
            answer.finish.map(Word),
            answer.decode_tokens_per_second,
            answer.time_to_first_token_ms,
            turn,
            answer.experts.map(Json),
            answer.context.map(Json),
            answer.left_out.as_ref().map(Json),
            answer.times.map(Json),
            answer.failure.as_ref().map(Json),
        ],
    )?;
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
fn index(connection: &Connection, id: u64, parts: &[Part]) -> Outcome<()> {
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
    let insert = "INSERT INTO message_words (rowid, text) VALUES (?1, ?2)";
    sql::run(connection, insert, params![id, text])?;
    characters::MESSAGES.index(connection, id, &[&text])
}

/// The bytes of a chat's messages: of their texts, and of what each takes in memory besides.
pub(crate) fn size_of_chat(connection: &Connection, chat: &str) -> Outcome<u64> {
    sql::one(
        connection,
        "SELECT (SELECT coalesce(sum(octet_length(parts) + coalesce(octet_length(tier), 0)
            + coalesce(octet_length(model), 0) + coalesce(octet_length(why), 0)
            + coalesce(octet_length(instead_of), 0) + coalesce(octet_length(left_out), 0)
            + coalesce(octet_length(failure), 0) + 512), 0) FROM messages WHERE chat_id = ?1)
         + (SELECT coalesce(sum(octet_length(part)), 0) FROM answer_pieces
            JOIN messages ON messages.id = message WHERE chat_id = ?1)",
        [chat],
        |row| row.get(0),
    )
}

/// Checks that a chat has room for a message of so many bytes.
///
/// # Errors
/// `PayloadTooLarge`.
pub(crate) fn check_room(connection: &Connection, chat: &str, more: usize) -> Outcome<()> {
    let size = size_of_chat(connection, chat)?.saturating_add(more as u64);
    check_size("the chat", size, CHAT_BYTES, IN_ANOTHER)
}

/// # Errors
/// `PayloadTooLarge` for what would take more bytes than it can.
pub(crate) fn check_size(what: &str, bytes: u64, most: u64, hint: &str) -> Outcome<()> {
    if bytes <= most {
        return Ok(());
    }
    let (bytes, most) = (bytes.div_ceil(1 << 20), most >> 20);
    let message = format!("{what} would take {bytes} MiB and can take {most} MiB");
    let error = Error::new(Code::PayloadTooLarge, message);
    Err(error.hint(hint).into())
}

/// Oldest first.
pub(crate) fn of_chat(connection: &Connection, chat: &str) -> Outcome<Vec<ChatMessage>> {
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
) -> Outcome<Vec<ChatMessage>> {
    let select = format!("SELECT {COLUMNS} FROM messages WHERE chat_id = ?1 ORDER BY id");
    let mut messages: Vec<ChatMessage> = sql::all(connection, &select, [chat], message)?;
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
pub(crate) fn parent_for(connection: &Connection, chat: &str, role: Role) -> Outcome<Option<u64>> {
    let leaf: Option<(u64, Option<u64>, Word<Role>)> = sql::first(
        connection,
        "SELECT messages.id, parent, role FROM messages JOIN chats ON leaf = messages.id WHERE chats.id = ?1",
        [chat],
        |row| row.try_into(),
    )?;
    Ok(
        leaf.and_then(|(id, parent, Word(last))| match (last, role) {
            (Role::Assistant, Role::Assistant) => parent,
            _ => Some(id),
        }),
    )
}

pub(crate) fn no_message(id: u64) -> Error {
    let message = format!("there is no message {id} in this chat");
    Error::new(Code::NotFound, message)
}

/// Checks that a message is of this chat.
///
/// # Errors
/// `NotFound`.
pub(crate) fn check_chat(connection: &Connection, id: u64, chat: &str) -> Outcome<()> {
    let select = "SELECT 1 FROM messages WHERE id = ?1 AND chat_id = ?2";
    // A number beyond SQLite's is no message's.
    let is_here = match i64::try_from(id) {
        Ok(id) => connection
            .prepare_cached(select)?
            .exists(params![id, chat])?,
        Err(_) => false,
    };
    match is_here {
        true => Ok(()),
        false => Err(no_message(id).into()),
    }
}

/// The message that a turn writes; `None` if it is gone with its chat. Its number may be another message's by then.
pub(crate) fn written_by(connection: &Connection, turn: &str) -> Outcome<Option<u64>> {
    let select = "SELECT id FROM messages WHERE turn = ?1";
    sql::first(connection, select, [turn], |row| row.get(0))
}

pub(crate) fn is_being_written(connection: &Connection, id: u64) -> Outcome<bool> {
    let select = "SELECT 1 FROM messages WHERE id = ?1 AND turn IS NOT NULL AND finish IS NULL";
    Ok(connection.prepare_cached(select)?.exists([id])?)
}

/// Adds what has arrived of an answer to it. It may be gone with its chat.
pub(crate) fn append(
    connection: &Connection,
    id: u64,
    pieces: &[Part],
    answer: &AnswerFacts,
) -> Outcome<()> {
    let found = sql::run(
        connection,
        "UPDATE messages SET tier = ?2, model = ?3, why = ?4, instead_of = ?5, time_to_first_token_ms = ?6,
         times = ?7 WHERE id = ?1",
        params![
            id,
            answer.tier,
            answer.model,
            answer.why,
            answer.instead_of,
            answer.time_to_first_token_ms,
            answer.times.map(Json),
        ],
    )?;
    if found > 0 {
        answer_pieces::append(connection, id, pieces)?;
    }
    Ok(())
}

/// Has a turn carry an answer on: it is unfinished again and without its grade, and its parts are the first of its pieces.
pub(crate) fn reopen(connection: &Connection, answer: &ChatMessage, turn: &str) -> Outcome<()> {
    let update = "UPDATE messages SET finish = NULL, failure = NULL, turn = ?2 WHERE id = ?1";
    sql::run(connection, update, params![answer.id, turn])?;
    grades::remove(connection, answer.id)?;
    answer_pieces::append(connection, answer.id, &answer.parts)
}

/// Writes an answer in place of its pieces; with `answer.finish` it is whole. The message; `None` if it is gone with its chat.
pub(crate) fn write(
    connection: &Connection,
    id: u64,
    parts: &[Part],
    answer: &AnswerFacts,
) -> Outcome<Option<ChatMessage>> {
    let written = sql::run(
        connection,
        "UPDATE messages SET parts = ?2, tier = ?3, model = ?4, why = ?5, instead_of = ?6, finish = ?7,
         decode_tokens_per_second = ?8, time_to_first_token_ms = ?9, experts = ?10, context = ?11, left_out = ?12, times = ?13,
         failure = ?14 WHERE id = ?1",
        params![
            id,
            Json(parts),
            answer.tier,
            answer.model,
            answer.why,
            answer.instead_of,
            answer.finish.map(Word),
            answer.decode_tokens_per_second,
            answer.time_to_first_token_ms,
            answer.experts.map(Json),
            answer.context.map(Json),
            answer.left_out.as_ref().map(Json),
            answer.times.map(Json),
            answer.failure.as_ref().map(Json),
        ],
    )?;
    if written > 0 {
        index(connection, id, parts)?;
    }
    answer_pieces::remove(connection, id)?;
    let select = format!("SELECT {COLUMNS} FROM messages WHERE id = ?1");
    sql::first(connection, &select, [id], message)
}

/// The message that a turn of this chat has written, once it is whole.
pub(crate) fn of_turn(
    connection: &Connection,
    chat: &str,
    turn: &str,
) -> Outcome<Option<ChatMessage>> {
    let select = format!(
        "SELECT {COLUMNS} FROM messages WHERE turn = ?1 AND chat_id = ?2 AND finish IS NOT NULL
         AND chat_id IN (SELECT id FROM chats WHERE deleted_at IS NULL)"
    );
    sql::first(connection, &select, [turn, chat], message)
}

/// Forgets why a question has no answer, as it is about to get one.
pub(crate) fn forget_failure(connection: &Connection, question: u64) -> Outcome<()> {
    let forget = "UPDATE messages SET failure = NULL WHERE id = ?1";
    sql::run(connection, forget, [question])?;
    Ok(())
}

/// Removes an answer of which nothing has arrived. Its question keeps why, and is the shown branch's last message again.
pub(crate) fn discard(
    connection: &Connection,
    id: u64,
    failure: Option<&TurnFailure>,
) -> Outcome<()> {
    let explain =
        "UPDATE messages SET failure = ?2 WHERE id = (SELECT parent FROM messages WHERE id = ?1)";
    sql::run(connection, explain, params![id, failure.map(Json)])?;
    for change in [
        "UPDATE chats SET leaf = (SELECT parent FROM messages WHERE id = ?1) WHERE leaf = ?1",
        // What a program has added behind it stays in the branch.
        "UPDATE messages SET parent = (SELECT parent FROM messages WHERE id = ?1) WHERE parent = ?1",
        "DELETE FROM messages WHERE id = ?1",
    ] {
        sql::run(connection, change, [id])?;
    }
    Ok(())
}

/// Ends the answers of a host that did not come to their end: what had arrived is kept.
pub(crate) fn end_unfinished(connection: &Connection) -> Outcome<()> {
    let pieced = "SELECT DISTINCT message FROM answer_pieces";
    let pieced: Vec<u64> = sql::all(connection, pieced, [], |row| row.get(0))?;
    for id in pieced {
        let parts = answer_pieces::join_pieces(connection, id)?;
        let update = "UPDATE messages SET parts = ?2 WHERE id = ?1";
        sql::run(connection, update, params![id, Json(&parts)])?;
        index(connection, id, &parts)?;
        answer_pieces::remove(connection, id)?;
    }
    let empty =
        "SELECT id FROM messages WHERE turn IS NOT NULL AND finish IS NULL AND parts = '[]'";
    let empty: Vec<u64> = sql::all(connection, empty, [], |row| row.get(0))?;
    for id in empty {
        discard(connection, id, None)?;
    }
    let end = "UPDATE messages SET finish = ?1 WHERE turn IS NOT NULL AND finish IS NULL";
    sql::run(connection, end, [Word(Finish::Error)])?;
    Ok(())
}

fn message(row: &Row) -> rusqlite::Result<ChatMessage> {
    Ok(ChatMessage {
        id: row.get(0)?,
        parent: row.get(1)?,
        role: row.get::<_, Word<Role>>(2)?.0,
        parts: row.get::<_, Json<_>>(3)?.0,
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
            failure: optional(row, 15)?,
        },
    })
}

fn optional<T: DeserializeOwned>(row: &Row, column: usize) -> rusqlite::Result<Option<T>> {
    Ok(row.get::<_, Option<Json<T>>>(column)?.map(|json| json.0))
}

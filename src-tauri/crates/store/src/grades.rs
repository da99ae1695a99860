//! The table of grades of answers.

use crate::{
    Store, chats,
    json::{of_json, to_json},
    messages, no_chat,
    word::Word,
};
use rusqlite::{Connection, Row, params};
use serde_json::{Value, json};
use std::collections::HashMap;
use tierbar_chats::{ChatMessage, Role, branch, training::GradedAnswer};
use tierbar_core::{Code, Error};
use tierbar_routing::{
    Level, Traits,
    grade::{Grade, GradeCounts, GradeGroup, GradeVerdict},
    judge,
};

/// An export has the newest grades: so many, or so much text. All of it is in memory at once.
const MOST_EXPORTED: u32 = 10_000;
const MOST_EXPORTED_BYTES: usize = 32 << 20;

impl Store {
    /// Grades an answer of a chat, in place of an earlier grade. `quant_of` returns how a model is quantized.
    ///
    /// # Errors
    /// [`Code::NotFound`] for an unknown chat or message, [`Code::BadRequest`] for what is no answer or is being written.
    pub async fn grade(
        &self,
        chat: &str,
        message: u64,
        grade: Grade,
        quant_of: impl Fn(&str) -> Option<String> + Send + 'static,
    ) -> Result<Grade, Error> {
        let chat = chat.to_owned();
        let grade = grade
            .checked()
            .map_err(|why| Error::new(Code::BadRequest, why))?;
        self.call(move |database| {
            database.write(|change| {
                let Some(summary) = chats::find(change, &chat)? else {
                    return Ok(Err(no_chat(&chat)));
                };
                let all = messages::of_chat(change, &chat)?;
                let answer = match gradable(&all, message) {
                    Ok(answer) => answer,
                    Err(refused) => return Ok(Err(refused)),
                };
                if messages::is_being_written(change, message)? {
                    let error = Error::new(Code::BadRequest, "the answer is being written");
                    return Ok(Err(error.hint("grade it when it is complete")));
                }
                let quant = answer.answer.model.as_deref().and_then(&quant_of);
                let level = level_of(&branch(&all, message));
                change
                    .prepare_cached(
                        "INSERT OR REPLACE INTO grades (message, verdict, reason, quant, level, settings, graded_at)
                         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                    )?
                    .execute(params![
                        message,
                        Word(grade.verdict),
                        grade.why,
                        quant,
                        Word(level),
                        to_json(&summary.settings)?,
                        chats::now(),
                    ])?;
                Ok(Ok(grade))
            })?
        })
        .await
    }

    /// Removes the grade of an answer, if it has one.
    ///
    /// # Errors
    /// [`Code::NotFound`] for an unknown chat or message.
    pub async fn remove_grade(&self, chat: &str, message: u64) -> Result<(), Error> {
        let chat = chat.to_owned();
        self.call(move |database| {
            database.write(|change| {
                if chats::find(change, &chat)?.is_none() {
                    return Ok(Err(no_chat(&chat)));
                }
                if !messages::is_of_chat(change, message, &chat)? {
                    return Ok(Err(no_message(message)));
                }
                remove(change, message)?;
                Ok(Ok(()))
            })?
        })
        .await
    }

    /// Counts the grades by model, tier and level, the most first. Those of deleted chats do not count.
    pub async fn grade_groups(&self) -> Result<Vec<GradeGroup>, Error> {
        self.call(|database| database.read(groups)).await
    }

    /// Returns the graded answers, the newest grade first, up to 10,000 and 32 MiB of text.
    pub async fn graded_answers(&self) -> Result<Vec<GradedAnswer>, Error> {
        self.call(|database| database.read(answers)).await
    }

    /// Has the router learn from none of the grades so far. They are kept.
    pub async fn reset_learned(&self) -> Result<(), Error> {
        self.call(|database| {
            database.write(|change| {
                change.execute("UPDATE grades SET is_learned = 0", [])?;
                Ok(())
            })
        })
        .await
    }
}

/// Removes the grade of an answer, also when the answer is carried on: it was not given to what it becomes.
pub(crate) fn remove(connection: &Connection, message: u64) -> rusqlite::Result<()> {
    connection
        .prepare_cached("DELETE FROM grades WHERE message = ?1")?
        .execute([message])?;
    Ok(())
}

/// Returns the grades of a chat's answers, by message.
pub(crate) fn of_chat(
    connection: &Connection,
    chat: &str,
) -> rusqlite::Result<HashMap<u64, Grade>> {
    connection
        .prepare_cached(
            "SELECT message, verdict, reason FROM grades JOIN messages ON messages.id = grades.message WHERE chat_id = ?1",
        )?
        .query_map([chat], |row| Ok((row.get(0)?, grade(row, 1)?)))?
        .collect()
}

/// Reads a verdict and its reason from two columns.
fn grade(row: &Row, column: usize) -> rusqlite::Result<Grade> {
    Ok(Grade {
        verdict: row.get::<_, Word<GradeVerdict>>(column)?.0,
        why: row.get(column + 1)?,
    })
}

fn gradable(all: &[ChatMessage], id: u64) -> Result<&ChatMessage, Error> {
    let found = all.iter().find(|message| message.id == id);
    let found = found.ok_or_else(|| no_message(id))?;
    if found.role != Role::Assistant {
        return Err(Error::new(Code::BadRequest, "only answers can be graded"));
    }
    Ok(found)
}

fn no_message(id: u64) -> Error {
    let message = format!("there is no message {id} in this chat");
    Error::new(Code::NotFound, message)
}

/// How hard the question of an answer is, by the rules of the router.
fn level_of(conversation: &[&ChatMessage]) -> Level {
    let messages = conversation
        .iter()
        .filter(|message| message.role == Role::User)
        .map(|message| json!({"role": "user", "content": message.text()}));
    let messages: Vec<Value> = messages.collect();
    judge(&Traits::of(&json!({ "messages": messages }))).level
}

fn groups(connection: &Connection) -> rusqlite::Result<Vec<GradeGroup>> {
    connection
        .prepare_cached(
            "SELECT messages.model, tier, quant, level,
                 sum(verdict = 'good'), sum(verdict = 'bad'),
                 sum(verdict = 'good' AND is_learned), sum(verdict = 'bad' AND is_learned)
             FROM grades JOIN messages ON messages.id = grades.message JOIN chats ON chats.id = messages.chat_id
             WHERE chats.deleted_at IS NULL
             GROUP BY messages.model, tier, quant, level
             ORDER BY count(*) DESC, messages.model, tier, level",
        )?
        .query_map([], |row| {
            let counts = |column: usize| -> rusqlite::Result<GradeCounts> {
                Ok(GradeCounts {
                    good: row.get(column)?,
                    bad: row.get(column + 1)?,
                })
            };
            let all = counts(4)?;
            Ok(GradeGroup {
                model: row.get(0)?,
                tier: row.get(1)?,
                quant: row.get(2)?,
                level: row.get::<_, Word<Level>>(3)?.0,
                counts: all,
                learned: counts(6)?,
                share: all.share(),
            })
        })?
        .collect()
}

/// Where a graded answer stands, and what was stored with its grade.
struct GradedMessage {
    chat: String,
    message: u64,
    grade: Grade,
    quant: Option<String>,
    level: Level,
    settings: String,
    graded_at: String,
}

fn answers(connection: &Connection) -> rusqlite::Result<Vec<GradedAnswer>> {
    let found: Vec<GradedMessage> = connection
        .prepare_cached(
            "SELECT chat_id, message, verdict, reason, quant, level, grades.settings, graded_at
             FROM grades JOIN messages ON messages.id = grades.message JOIN chats ON chats.id = messages.chat_id
             WHERE chats.deleted_at IS NULL ORDER BY graded_at DESC, message DESC LIMIT ?1",
        )?
        .query_map([MOST_EXPORTED], |row| {
            Ok(GradedMessage {
                chat: row.get(0)?,
                message: row.get(1)?,
                grade: grade(row, 2)?,
                quant: row.get(4)?,
                level: row.get::<_, Word<Level>>(5)?.0,
                settings: row.get(6)?,
                graded_at: row.get(7)?,
            })
        })?
        .collect::<rusqlite::Result<_>>()?;
    let mut answers = Vec::new();
    let mut bytes = 0;
    // The chat of the last answer: graded answers of one chat often follow each other.
    let mut chat: Option<(String, Vec<ChatMessage>)> = None;
    for found in found {
        if chat.as_ref().is_none_or(|(id, _)| *id != found.chat) {
            let messages = messages::of_chat(connection, &found.chat)?;
            chat = Some((found.chat.clone(), messages));
        }
        let all = chat.as_ref().map(|(_, messages)| messages.as_slice());
        let Some(answer) = to_graded_answer(all.unwrap_or_default(), found)? else {
            continue;
        };
        let prompt = answer.prompt.iter().map(|(_, text)| text.len());
        bytes += prompt.sum::<usize>() + answer.text.len();
        if bytes > MOST_EXPORTED_BYTES {
            break;
        }
        answers.push(answer);
    }
    Ok(answers)
}

/// The answer with its conversation; `None` if it has no text to learn from.
fn to_graded_answer(
    all: &[ChatMessage],
    found: GradedMessage,
) -> rusqlite::Result<Option<GradedAnswer>> {
    let path = branch(all, found.message);
    let Some((answer, before)) = path.split_last() else {
        return Ok(None);
    };
    let text = answer.text();
    if text.trim().is_empty() {
        return Ok(None);
    }
    let prompt = before.iter().map(|message| {
        let role = match message.role {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
        };
        (role, message.text())
    });
    Ok(Some(GradedAnswer {
        question: answer.parent,
        prompt: prompt.collect(),
        text,
        model: answer.answer.model.clone(),
        tier: answer.answer.tier.clone(),
        settings: of_json(6, &found.settings)?,
        chat: found.chat,
        message: found.message,
        grade: found.grade,
        quant: found.quant,
        level: found.level,
        graded_at: found.graded_at,
    }))
}

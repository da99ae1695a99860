//! The table of grades of answers.

use crate::{
    Store, chats, messages,
    sql::{self, Json, Outcome, Word},
};
use rusqlite::{Connection, Row, params};
use serde_json::{Value, json};
use std::collections::HashMap;
use tierbar_chats::{ChatMessage, Role, branch, training::GradedAnswer};
use tierbar_core::{Error, bad_request};
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
        quant_of: impl FnOnce(&str) -> Option<String> + Send + 'static,
    ) -> Result<Grade, Error> {
        let chat = chat.to_owned();
        let grade = grade.checked().map_err(bad_request)?;
        self.write(move |change| {
            let summary = chats::get(change, &chat)?;
            let all = messages::of_chat(change, &chat)?;
            let answer = gradable(&all, message)?;
            if messages::is_being_written(change, message)? {
                let error = bad_request("the answer is being written");
                return Err(error.hint("grade it when it is complete").into());
            }
            let quant = answer.answer.model.as_deref().and_then(quant_of);
            let level = level_of(&branch(&all, message));
            sql::run(
                change,
                "INSERT OR REPLACE INTO grades (message, verdict, reason, quant, level, settings, graded_at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                params![
                    message,
                    Word(grade.verdict),
                    grade.why,
                    quant,
                    Word(level),
                    Json(&summary.settings),
                    chats::now(),
                ],
            )?;
            Ok(grade)
        })
        .await
    }

    /// Removes the grade of an answer, if it has one.
    ///
    /// # Errors
    /// [`Code::NotFound`] for an unknown chat or message.
    pub async fn remove_grade(&self, chat: &str, message: u64) -> Result<(), Error> {
        let chat = chat.to_owned();
        self.write(move |change| {
            chats::get(change, &chat)?;
            messages::check_chat(change, message, &chat)?;
            remove(change, message)
        })
        .await
    }

    /// Counts the grades by model, tier and level, the most first. Those of deleted chats do not count.
    pub async fn grade_groups(&self) -> Result<Vec<GradeGroup>, Error> {
        self.read(groups).await
    }

    /// Returns the graded answers, the newest grade first, up to 10,000 and 32 MiB of text.
    pub async fn graded_answers(&self) -> Result<Vec<GradedAnswer>, Error> {
        self.read(answers).await
    }

    /// Has the router learn from none of the grades so far. They are kept.
    pub async fn reset_learned(&self) -> Result<(), Error> {
        self.execute("UPDATE grades SET is_learned = 0", []).await
    }
}

/// Removes the grade of an answer, also when the answer is carried on: it was not given to what it becomes.
pub(crate) fn remove(connection: &Connection, message: u64) -> Outcome<()> {
    sql::run(
        connection,
        "DELETE FROM grades WHERE message = ?1",
        [message],
    )?;
    Ok(())
}

/// Returns the grades of a chat's answers, by message.
pub(crate) fn of_chat(connection: &Connection, chat: &str) -> Outcome<HashMap<u64, Grade>> {
    sql::all(
        connection,
        "SELECT message, verdict, reason FROM grades JOIN messages ON messages.id = grades.message WHERE chat_id = ?1",
        [chat],
        |row| Ok((row.get(0)?, grade(row, 1)?)),
    )
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
    let found = found.ok_or_else(|| messages::no_message(id))?;
    if found.role != Role::Assistant {
        return Err(bad_request("only answers can be graded"));
    }
    Ok(found)
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

fn groups(connection: &Connection) -> Outcome<Vec<GradeGroup>> {
    sql::all(
        connection,
        "SELECT messages.model, tier, quant, level,
             sum(verdict = 'good'), sum(verdict = 'bad'),
             sum(verdict = 'good' AND is_learned), sum(verdict = 'bad' AND is_learned)
         FROM grades JOIN messages ON messages.id = grades.message JOIN chats ON chats.id = messages.chat_id
         WHERE chats.deleted_at IS NULL
         GROUP BY messages.model, tier, quant, level
         ORDER BY count(*) DESC, messages.model, tier, level",
        [],
        |row| {
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
        },
    )
}

fn answers(connection: &Connection) -> Outcome<Vec<GradedAnswer>> {
    let found: Vec<GradedAnswer> = sql::all(
        connection,
        "SELECT chat_id, message, verdict, reason, quant, level, grades.settings, graded_at
         FROM grades JOIN messages ON messages.id = grades.message JOIN chats ON chats.id = messages.chat_id
         WHERE chats.deleted_at IS NULL ORDER BY graded_at DESC, message DESC LIMIT ?1",
        [MOST_EXPORTED],
        |row| {
            Ok(GradedAnswer {
                chat: row.get(0)?,
                message: row.get(1)?,
                grade: grade(row, 2)?,
                quant: row.get(4)?,
                level: row.get::<_, Word<Level>>(5)?.0,
                settings: row.get::<_, Json<_>>(6)?.0,
                graded_at: row.get(7)?,
                // What its chat has follows.
                question: None,
                prompt: Vec::new(),
                text: String::new(),
                model: None,
                tier: None,
            })
        },
    )?;
    let mut answers = Vec::new();
    let mut bytes = 0;
    // The chat of the last answer: graded answers of one chat often follow each other.
    let mut chat: (String, Vec<ChatMessage>) = Default::default();
    for found in found {
        if chat.0 != found.chat {
            let messages = messages::of_chat(connection, &found.chat)?;
            chat = (found.chat.clone(), messages);
        }
        let Some(answer) = with_conversation(found, &chat.1) else {
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

/// Returns the answer with its conversation; `None` if it has no text to learn from.
fn with_conversation(found: GradedAnswer, all: &[ChatMessage]) -> Option<GradedAnswer> {
    let path = branch(all, found.message);
    let (answer, before) = path.split_last()?;
    let text = answer.text();
    if text.trim().is_empty() {
        return None;
    }
    let prompt = before.iter().map(|message| {
        let role = match message.role {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
        };
        (role, message.text())
    });
    Some(GradedAnswer {
        question: answer.parent,
        prompt: prompt.collect(),
        text,
        model: answer.answer.model.clone(),
        tier: answer.answer.tier.clone(),
        ..found
    })
}

//! The table of attachments: the files of messages, by hash. They go with the last message that has them.

use crate::{
    Store,
    messages::check_size,
    sql::{self, Outcome},
};
use rusqlite::{Connection, params};
use std::collections::HashMap;
use tierbar_chats::{ChatMessage, Part};
use tierbar_core::{Code, Error};

const CHAT_BYTES: u64 = 256 << 20;

/// A file of a new question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NewAttachment {
    New {
        part: Part,
        data: Vec<u8>,
    },
    /// One that a message of the chat has already, by its hash.
    Stored(String),
}

impl Store {
    /// Returns the bytes of a chat's files.
    pub async fn attachments_size(&self, chat: &str) -> Result<u64, Error> {
        let chat = chat.to_owned();
        self.read(move |connection| size(connection, &chat)).await
    }

    /// Returns the files with these hashes, as far as they are there.
    pub async fn attachments(
        &self,
        hashes: Vec<String>,
    ) -> Result<HashMap<String, Vec<u8>>, Error> {
        self.read(move |connection| {
            let find = "SELECT data FROM attachments WHERE sha256 = ?1";
            let mut files = HashMap::new();
            for hash in hashes {
                if let Some(data) = sql::first(connection, find, [&hash], |row| row.get(0))? {
                    files.insert(hash, data);
                }
            }
            Ok(files)
        })
        .await
    }
}

/// Returns the parts of a question's files, after their room is checked.
pub(crate) fn parts_of_files(
    connection: &Connection,
    chat: &str,
    messages: &[ChatMessage],
    files: &[NewAttachment],
) -> Outcome<Vec<Part>> {
    let mut parts = Vec::new();
    let mut more = 0_u64;
    for file in files {
        parts.push(match file {
            NewAttachment::New { part, data } => {
                more = more.saturating_add(data.len() as u64);
                part.clone()
            }
            NewAttachment::Stored(hash) => {
                let mut all = messages.iter().flat_map(|message| &message.parts);
                let is_named = |part: &&Part| part.file().is_some_and(|file| file.sha256 == *hash);
                let part = all.find(is_named).ok_or_else(|| {
                    let message = "no message of this chat has a file with that hash";
                    Error::new(Code::NotFound, message)
                })?;
                part.clone()
            }
        });
    }
    if more > 0 {
        let total = size(connection, chat)?.saturating_add(more);
        check_size("the files of the chat", total, CHAT_BYTES)?;
    }
    Ok(parts)
}

/// Stores the new ones of a question's files, before the message that has them.
pub(crate) fn add(connection: &Connection, files: &[NewAttachment]) -> Outcome<()> {
    for file in files {
        if let NewAttachment::New { part, data } = file
            && let Some(file) = part.file()
        {
            put(connection, &file.sha256, data)?;
        }
    }
    Ok(())
}

/// Stores a file, unless it is there.
pub(crate) fn put(connection: &Connection, hash: &str, data: &[u8]) -> Outcome<usize> {
    let insert = "INSERT OR IGNORE INTO attachments (sha256, data) VALUES (?1, ?2)";
    sql::run(connection, insert, params![hash, data])
}

fn size(connection: &Connection, chat: &str) -> Outcome<u64> {
    sql::one(
        connection,
        "SELECT coalesce(sum(length(data)), 0) FROM attachments WHERE sha256 IN
         (SELECT sha256 FROM message_files JOIN messages ON messages.id = message WHERE chat_id = ?1)",
        [chat],
        |row| row.get(0),
    )
}

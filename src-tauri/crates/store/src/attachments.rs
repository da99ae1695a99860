//! The table of attachments: the files of messages, by hash. They go with the last message that has them.

use crate::Store;
use rusqlite::{Connection, OptionalExtension, params};
use std::collections::HashMap;
use tierbar_chats::{ChatMessage, Part};
use tierbar_core::{Code, Error};

/// The most bytes that a chat's files take.
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
        self.call(move |database| database.read(|connection| size(connection, &chat)))
            .await
    }

    /// Returns the files with these hashes, as far as they are there.
    pub async fn attachments(
        &self,
        hashes: Vec<String>,
    ) -> Result<HashMap<String, Vec<u8>>, Error> {
        self.call(move |database| {
            database.read(|connection| {
                let mut files = HashMap::new();
                for hash in hashes {
                    if let Some(data) = find(connection, &hash)? {
                        files.insert(hash, data);
                    }
                }
                Ok(files)
            })
        })
        .await
    }
}

/// Returns the parts of a question's files, after their room is checked. The outer result is the database's.
pub(crate) fn parts_of_files(
    connection: &Connection,
    chat: &str,
    messages: &[ChatMessage],
    files: &[NewAttachment],
) -> rusqlite::Result<Result<Vec<Part>, Error>> {
    let mut parts = Vec::new();
    let mut more = 0_u64;
    for file in files {
        match file {
            NewAttachment::New { part, data } => {
                more = more.saturating_add(data.len() as u64);
                parts.push(part.clone());
            }
            NewAttachment::Stored(hash) => {
                let mut all = messages.iter().flat_map(|message| &message.parts);
                let is_named = |part: &&Part| part.file().is_some_and(|file| file.sha256 == *hash);
                let Some(part) = all.find(is_named) else {
                    let message = "no message of this chat has a file with that hash";
                    return Ok(Err(Error::new(Code::NotFound, message)));
                };
                parts.push(part.clone());
            }
        }
    }
    let total = if more == 0 {
        0
    } else {
        size(connection, chat)?.saturating_add(more)
    };
    if total > CHAT_BYTES {
        let message = format!(
            "the files of the chat would take {} MiB and can take {} MiB",
            total.div_ceil(1 << 20),
            CHAT_BYTES >> 20
        );
        let error = Error::new(Code::PayloadTooLarge, message);
        return Ok(Err(error.hint("begin a new chat, or send less")));
    }
    Ok(Ok(parts))
}

/// Stores the new ones of a question's files, before the message that has them.
pub(crate) fn add(connection: &Connection, files: &[NewAttachment]) -> rusqlite::Result<()> {
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
pub(crate) fn put(connection: &Connection, hash: &str, data: &[u8]) -> rusqlite::Result<()> {
    connection
        .prepare_cached("INSERT OR IGNORE INTO attachments (sha256, data) VALUES (?1, ?2)")?
        .execute(params![hash, data])?;
    Ok(())
}

fn size(connection: &Connection, chat: &str) -> rusqlite::Result<u64> {
    connection
        .prepare_cached(
            "SELECT coalesce(sum(length(data)), 0) FROM attachments WHERE sha256 IN
             (SELECT sha256 FROM message_files JOIN messages ON messages.id = message WHERE chat_id = ?1)",
        )?
        .query_row([chat], |row| row.get(0))
}

fn find(connection: &Connection, hash: &str) -> rusqlite::Result<Option<Vec<u8>>> {
    connection
        .prepare_cached("SELECT data FROM attachments WHERE sha256 = ?1")?
        .query_row([hash], |row| row.get(0))
        .optional()
}

//! The table of attachments: the files of messages, by hash. They go with the last message that has them.

use crate::{
    Store,
    messages::{IN_ANOTHER, check_size},
    sql::{self, Outcome},
};
use rusqlite::{Connection, params};
use std::collections::HashMap;
use tierbar_chats::{ChatMessage, Part};
use tierbar_core::{Code, Error};

pub(crate) const CHAT_BYTES: u64 = 256 << 20;
/// Of all chats together, so that they do not fill the disk.
const ALL_BYTES: u64 = 8 << 30;

/// The room for the files of all chats, in one change. What is there is added up for the first new file alone: of many files, it takes
/// long.
#[derive(Debug)]
pub(crate) struct AllFiles {
    most: u64,
    bytes: Option<u64>,
}

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

/// Returns the parts of a question's files, after their room in the chat is checked: `most` bytes.
pub(crate) fn parts_of_files(
    connection: &Connection,
    chat: &str,
    messages: &[ChatMessage],
    files: &[NewAttachment],
    most: u64,
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
        check_size("the files of the chat", total, most, IN_ANOTHER)?;
    }
    Ok(parts)
}

/// Stores the new ones of a question's files, before the message that has them.
pub(crate) fn add(connection: &Connection, files: &[NewAttachment]) -> Outcome<()> {
    let mut all = AllFiles::default();
    for file in files {
        if let NewAttachment::New { part, data } = file
            && let Some(file) = part.file()
        {
            all.put(connection, &file.sha256, data)?;
        }
    }
    Ok(())
}

impl Default for AllFiles {
    fn default() -> Self {
        Self {
            most: ALL_BYTES,
            bytes: None,
        }
    }
}

impl AllFiles {
    /// Stores a file, unless it is there.
    ///
    /// # Errors
    /// `PayloadTooLarge`; the change is to be given up.
    pub(crate) fn put(&mut self, connection: &Connection, hash: &str, data: &[u8]) -> Outcome<()> {
        let insert = "INSERT OR IGNORE INTO attachments (sha256, data) VALUES (?1, ?2)";
        if sql::run(connection, insert, params![hash, data])? == 0 {
            return Ok(());
        }
        let bytes = match self.bytes {
            Some(before) => before.saturating_add(data.len() as u64),
            None => {
                let sum = "SELECT sum(length(data)) FROM attachments";
                sql::one(connection, sum, [], |row| row.get(0))?
            }
        };
        self.bytes = Some(bytes);
        let hint = "delete chats that have files; ten minutes later, when they can no longer be restored, try again";
        check_size("the files of all chats", bytes, self.most, hint)
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::Database;
    use tierbar_chats::Attachment;

    const MIB: usize = 1 << 20;

    #[test]
    fn files_of_a_chat_and_of_all_chats_have_a_bound() {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::open(&folder.path().join("tierbar.db")).unwrap();
        let of_chat = |bytes: usize| {
            let file = Attachment {
                sha256: "ab".into(),
                media_type: "text/plain".into(),
                name: "a.txt".into(),
                bytes: bytes as u64,
            };
            let new = NewAttachment::New {
                part: Part::File { file },
                data: vec![0; bytes],
            };
            database.read(|connection| parts_of_files(connection, "a", &[], &[new], 2 << 20))
        };
        assert_eq!(of_chat(2 * MIB).unwrap().len(), 1);
        let error = of_chat(2 * MIB + 1).unwrap_err();
        assert_eq!(error.code, Code::PayloadTooLarge);
        assert!(error.message.contains("the chat would take 3"), "{error}");

        let put = |files: &[(&str, usize)]| {
            database.write(|change| {
                let mut all = AllFiles {
                    most: 3 << 20,
                    bytes: None,
                };
                files
                    .iter()
                    .try_for_each(|(hash, bytes)| all.put(change, hash, &vec![0; *bytes]))
            })
        };
        // The second "ab" is there, and takes no more.
        let full = [("ab", 2 * MIB), ("ab", 2 * MIB), ("cd", MIB)];
        let error = put(&[&full[..], &[("ef", 1)]].concat()).unwrap_err();
        assert!(error.message.contains("all chats would take 4"), "{error}");
        put(&full).unwrap();
        put(&full).unwrap();
        let error = put(&[("ef", 1)]).unwrap_err();
        assert_eq!(error.code, Code::PayloadTooLarge);
        assert!(error.message.contains("all chats would take 4"), "{error}");
        let hint = error.hint.unwrap();
        assert!(hint.starts_with("delete chats"), "{hint}");
        // What was refused has left nothing.
        let count = "SELECT count(*) FROM attachments";
        let count: u64 = database
            .read(|connection| sql::one(connection, count, [], |row| row.get(0)))
            .unwrap();
        assert_eq!(count, 2);
    }
}

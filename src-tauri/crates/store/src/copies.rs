//! Chats that are made of others: forks, and those of a file.

use crate::{Store, attachments::AllFiles, chats, messages, sql::Outcome, title};
use jiff::Timestamp;
use rusqlite::Connection;
use std::collections::HashMap;
use tierbar_chats::{Chat, ChatMessage, ChatSummary, Finish, Part, branch, import::ImportedChat};
use tierbar_core::Error;
use uuid::Uuid;

/// What a message takes in memory beside its texts, as [`messages::size_of_chat`] counts.
const AROUND_A_MESSAGE: usize = 512;

/// Returns the bytes of a file of an import. They may be many times the memory of the import's chats.
pub type ImportedFile = Box<dyn Fn() -> Vec<u8> + Send>;

/// What a part of an import has brought.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AddedChats {
    pub chats: u64,
    /// Also those of chats that were there already.
    pub messages: u64,
    /// Chats that were there already.
    pub known: u64,
    /// Chats that are larger than one can be.
    pub too_large: u64,
}

/// The files of the messages that are imported.
struct Files {
    found: HashMap<String, ImportedFile>,
    all: AllFiles,
}

impl Store {
    /// Makes a new chat of the branch up to a message, with the chat's title and settings.
    pub async fn fork_chat(&self, id: &str, message: u64) -> Result<ChatSummary, Error> {
        let id = id.to_owned();
        self.write(move |change| fork(change, &id, message)).await
    }

    /// Adds chats of a file, all or none. Of those that are here already, only messages are added that are not. `files`: the files of their
    /// messages, by hash, which are read one by one; a message is without those that are missing.
    pub async fn import_chats(
        &self,
        chats: Vec<ImportedChat>,
        files: HashMap<String, ImportedFile>,
    ) -> Result<AddedChats, Error> {
        self.write(move |change| {
            let mut added = AddedChats::default();
            let mut files = Files {
                found: files,
                all: AllFiles::default(),
            };
            for chat in chats {
                import(change, chat, &mut files, &mut added)?;
            }
            Ok(added)
        })
        .await
    }
}

fn fork(change: &Connection, id: &str, message: u64) -> Outcome<ChatSummary> {
    let original = chats::get(change, id)?;
    let all = messages::of_chat_without_grades(change, id)?;
    let path = branch(&all, message);
    if path.is_empty() {
        return Err(messages::no_message(message).into());
    }
    let mut copies: Vec<ChatMessage> = Vec::new();
    for found in path {
        let mut copy = ChatMessage {
            parent: copies.last().map(|before| before.id),
            ..found.clone()
        };
        // The copy ends here: its turn writes on in the original alone.
        if messages::is_being_written(change, copy.id)? {
            if copy.parts.is_empty() {
                continue;
            }
            copy.answer.finish = Some(Finish::Stopped);
        }
        copies.push(copy);
    }
    let last = copies.last().map(|message| message.id);
    let now = chats::now();
    let chat = ChatSummary {
        id: Uuid::new_v4().to_string(),
        created_at: now.clone(),
        updated_at: now,
        pinned: false,
        ..original
    };
    chats::insert(change, &chat, None)?;
    let ids = messages::copy(change, &chat.id, copies, HashMap::new())?;
    if let Some(leaf) = last.and_then(|last| ids.get(&last)) {
        chats::set_leaf(change, &chat.id, *leaf)?;
    }
    Ok(chat)
}

fn import(
    change: &Connection,
    imported: ImportedChat,
    files: &mut Files,
    added: &mut AddedChats,
) -> Outcome<()> {
    let source = imported.source;
    let Chat {
        summary,
        leaf,
        mut messages,
    } = imported.chat;
    // A file that is named and not contained.
    let is_missing = |part: &Part| {
        let file = part.file();
        file.is_some_and(|file| !files.found.contains_key(&file.sha256))
    };
    for message in &mut messages {
        message.parts.retain(|part| !is_missing(part));
    }
    if !source.is_empty()
        && let Some(known) = chats::of_source(change, &source)?
    {
        added.known += 1;
        return go_on(change, &known, leaf, messages, files, added);
    }
    let size: usize = messages.iter().map(size).sum();
    if size as u64 > messages::CHAT_BYTES {
        added.too_large += 1;
        return Ok(());
    }
    let created_at = time(imported.created_ms, &summary.created_at);
    let updated_at = time(imported.updated_ms, &summary.updated_at).max(created_at.clone());
    let mut chat = ChatSummary {
        id: Uuid::new_v4().to_string(),
        created_at,
        updated_at,
        turn: None,
        found: None,
        ..summary
    };
    if chat.title.is_empty() {
        let mut messages = messages.iter();
        let title = messages.find_map(|message| title::of_message(message.role, &message.text()));
        chat.title = title.unwrap_or_default();
    }
    let source = (!source.is_empty()).then_some(source.as_str());
    chats::insert(change, &chat, source)?;
    files.put(change, &messages)?;
    let count = messages.len() as u64;
    let last = messages.last().map(|message| message.id);
    let ids = messages::copy(change, &chat.id, messages, HashMap::new())?;
    if let Some(leaf) = leaf.or(last).and_then(|leaf| ids.get(&leaf)) {
        chats::set_leaf(change, &chat.id, *leaf)?;
    }
    added.chats += 1;
    added.messages += count;
    Ok(())
}

/// Adds what a chat has in the file and not here: it has gone on in the program that it comes from.
fn go_on(
    change: &Connection,
    id: &str,
    leaf: Option<u64>,
    messages: Vec<ChatMessage>,
    files: &mut Files,
    added: &mut AddedChats,
) -> Outcome<()> {
    let here = messages::of_chat_without_grades(change, id)?;
    let mut below: HashMap<Option<u64>, Vec<&ChatMessage>> = HashMap::new();
    for message in &here {
        below.entry(message.parent).or_default().push(message);
    }
    let (mut ids, mut more) = (HashMap::new(), Vec::new());
    for message in messages {
        let parent = match message.parent {
            Some(parent) => ids.get(&parent).copied().map(Some),
            None => Some(None),
        };
        let mut children = parent
            .and_then(|parent| below.get(&parent))
            .into_iter()
            .flatten();
        let same = children.find(|known| {
            known.role == message.role && known.text().trim() == message.text().trim()
        });
        match same {
            Some(known) => drop(ids.insert(message.id, known.id)),
            None => more.push(message),
        }
    }
    // A chat that begins otherwise was read in another way then, and is here.
    if ids.is_empty() || more.is_empty() {
        return Ok(());
    }
    let size: usize = more.iter().map(size).sum();
    if messages::size_of_chat(change, id)? + size as u64 > messages::CHAT_BYTES {
        added.too_large += 1;
        return Ok(());
    }
    files.put(change, &more)?;
    added.messages += more.len() as u64;
    let shown = chats::leaf(change, id)?;
    let ends_as_imported = shown.is_none_or(|shown| ids.values().any(|known| *known == shown));
    let leaf = leaf.filter(|leaf| ends_as_imported && !ids.contains_key(leaf));
    let ids = messages::copy(change, id, more, ids)?;
    if let Some(leaf) = leaf.and_then(|leaf| ids.get(&leaf)) {
        chats::set_leaf(change, id, *leaf)?;
    }
    chats::touch(change, id)
}

impl Files {
    fn put(&mut self, change: &Connection, messages: &[ChatMessage]) -> Outcome<()> {
        let parts = messages.iter().flat_map(|message| &message.parts);
        for hash in parts.filter_map(|part| Some(&part.file()?.sha256)) {
            if let Some(data) = self.found.get(hash) {
                self.all.put(change, hash, &data())?;
            }
        }
        Ok(())
    }
}

/// The bytes of a message, nearly as the table counts them.
fn size(message: &ChatMessage) -> usize {
    let parts = message.parts.iter().map(Part::text_size);
    parts.sum::<usize>() + AROUND_A_MESSAGE
}

/// A time of a file as it is stored; now, if the file does not say or the time is to come.
fn time(ms: Option<i64>, text: &str) -> String {
    let now = Timestamp::now();
    let time = ms.and_then(|ms| Timestamp::from_millisecond(ms).ok());
    let time = time.or_else(|| text.parse().ok());
    chats::to_stored_time(time.map_or(now, |time| time.min(now)))
}

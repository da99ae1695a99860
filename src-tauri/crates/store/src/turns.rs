//! What a turn reads and writes: its question, the conversation before it, and the answer while it is written.

use crate::{NewMessage, Store, chats, messages, no_chat, title};
use rusqlite::Transaction;
use serde::{Deserialize, Deserializer};
use tierbar_core::{
    Code, Error,
    chat::{
        AnswerFacts, ChatMessage, ChatSummary, Part, Role, branch,
        context::{LeftOut, WhenFull},
    },
};

/// The message that a turn starts from. As JSON, a number or `null` for [`Self::Root`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Parent {
    /// The last message of the shown branch.
    #[default]
    Leaf,
    /// None: the question begins a branch of its own.
    Root,
    Message(u64),
}

impl<'de> Deserialize<'de> for Parent {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        let id = Option::<u64>::deserialize(json)?;
        Ok(id.map_or(Self::Root, Self::Message))
    }
}

/// How a turn begins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewTurn {
    /// Names the turn.
    pub id: String,
    /// The question; `None` asks the question of `parent` again.
    pub text: Option<String>,
    /// With a question, the message before it; without, the question or one of its answers.
    pub parent: Parent,
    /// What answers this once, in place of the chat's model.
    pub model: Option<String>,
    /// What happens from now on once the context is full, if that changes.
    pub when_full: Option<WhenFull>,
}

/// A turn that has begun.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenedTurn {
    pub chat: ChatSummary,
    /// What answers.
    pub model: String,
    /// From the chat's first message to the question.
    pub conversation: Vec<ChatMessage>,
    /// The summaries that answers of this chat were written with, those of other branches too.
    pub summaries: Vec<LeftOut>,
    /// The message that is going to be the answer.
    pub answer: u64,
}

impl Store {
    /// Stores a turn's question and an answer without content, to be written by [`Self::append_answer`] and [`Self::write_answer`]. Both become the shown branch.
    ///
    /// # Errors
    /// [`Code::NotFound`] for an unknown chat or parent, [`Code::BadRequest`] if there is no question.
    pub async fn open_turn(&self, chat: &str, mut turn: NewTurn) -> Result<OpenedTurn, Error> {
        let chat = chat.to_owned();
        let blank = turn
            .text
            .as_deref()
            .is_some_and(|text| text.trim().is_empty());
        if blank {
            return Err(Error::new(Code::BadRequest, "the message is empty"));
        }
        let once = chats::ChatFields {
            model: turn.model.take(),
            ..chats::ChatFields::default()
        };
        turn.model = once.checked()?.model;
        self.call(move |database| database.write(|change| open(change, &chat, &turn))?)
            .await
    }

    /// Adds what has arrived of a turn's answer since the last call. After the chat's deletion, nothing is added.
    pub async fn append_answer(
        &self,
        turn: &str,
        pieces: Vec<Part>,
        answer: AnswerFacts,
    ) -> Result<(), Error> {
        let turn = turn.to_owned();
        self.call(move |database| {
            database.write(|change| match messages::written_by(change, &turn)? {
                Some(id) => messages::append(change, id, &pieces, &answer),
                None => Ok(()),
            })
        })
        .await
    }

    /// Writes a turn's answer in place of its pieces; with a `finish` it is whole. The message; `None` if the chat has been deleted.
    pub async fn write_answer(
        &self,
        turn: &str,
        parts: Vec<Part>,
        answer: AnswerFacts,
    ) -> Result<Option<ChatMessage>, Error> {
        let turn = turn.to_owned();
        self.call(move |database| {
            database.write(|change| match messages::written_by(change, &turn)? {
                Some(id) => messages::write(change, id, &parts, &answer),
                None => Ok(None),
            })
        })
        .await
    }

    /// Returns the message that a turn of this chat has written; `None` while it writes, and if nothing of it was kept.
    pub async fn answer_of_turn(
        &self,
        chat: &str,
        turn: &str,
    ) -> Result<Option<ChatMessage>, Error> {
        let (chat, turn) = (chat.to_owned(), turn.to_owned());
        self.call(move |database| {
            database.read(|connection| messages::of_turn(connection, &chat, &turn))
        })
        .await
    }

    /// Removes a turn's answer of which nothing has arrived.
    pub async fn discard_answer(&self, turn: &str) -> Result<(), Error> {
        let turn = turn.to_owned();
        self.call(move |database| {
            database.write(|change| match messages::written_by(change, &turn)? {
                Some(id) => messages::discard(change, id),
                None => Ok(()),
            })
        })
        .await
    }
}

fn open(
    change: &Transaction,
    chat: &str,
    turn: &NewTurn,
) -> rusqlite::Result<Result<OpenedTurn, Error>> {
    if chats::find(change, chat)?.is_none() {
        return Ok(Err(no_chat(chat)));
    }
    let text = turn.text.as_deref().unwrap_or_default();
    if let Err(full) = messages::check_room(change, chat, text.len())? {
        return Ok(Err(full));
    }
    let mut all = messages::of_chat(change, chat)?;
    let parent = match turn.parent {
        Parent::Message(parent) if !all.iter().any(|message| message.id == parent) => {
            let message = format!("there is no message {parent} in this chat");
            return Ok(Err(Error::new(Code::NotFound, message)));
        }
        Parent::Message(parent) => Some(parent),
        Parent::Root => None,
        Parent::Leaf => chats::leaf(change, chat)?,
    };
    // What is refused changes nothing: the first write is behind the last refusal.
    let question = match &turn.text {
        Some(text) => {
            let message = NewMessage {
                role: Role::User,
                content: text.clone(),
                answer: AnswerFacts::default(),
            };
            let title = title::of_message(&message);
            let message = messages::add(change, chat, parent, message, None)?;
            if let Some(title) = title {
                chats::title_if_untitled(change, chat, &title)?;
            }
            let id = message.id;
            all.push(message);
            Some(id)
        }
        None => {
            let path = parent
                .map(|parent| branch(&all, parent))
                .unwrap_or_default();
            let last = path.iter().rfind(|message| message.role == Role::User);
            last.map(|message| message.id)
        }
    };
    let Some(question) = question else {
        let error = Error::new(Code::BadRequest, "there is no question to answer");
        return Ok(Err(error.hint("send the question as \"text\"")));
    };
    let fields = chats::ChatFields {
        when_full: turn.when_full,
        ..chats::ChatFields::default()
    };
    chats::update(change, chat, &fields)?;
    let draft = NewMessage {
        role: Role::Assistant,
        content: String::new(),
        answer: AnswerFacts::default(),
    };
    let answer = messages::add(change, chat, Some(question), draft, Some(&turn.id))?.id;
    chats::set_leaf(change, chat, answer)?;
    let conversation = branch(&all, question).into_iter().cloned().collect();
    let summaries = all
        .iter()
        .filter_map(|message| message.answer.left_out.clone())
        .filter(|left| left.summary.is_some());
    let summaries = summaries.collect();
    let Some(chat) = chats::find(change, chat)? else {
        return Ok(Err(no_chat(chat)));
    };
    Ok(Ok(OpenedTurn {
        model: turn.model.clone().unwrap_or_else(|| chat.model.clone()),
        chat,
        conversation,
        summaries,
        answer,
    }))
}

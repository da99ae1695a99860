//! What a turn reads and writes: its question, the conversation before it, and the answer while it is written.

use crate::{NewAttachment, Store, attachments, chats, messages, sql::Outcome, title};
use rusqlite::{Connection, Transaction};
use serde::{Deserialize, Deserializer};
use tierbar_chats::{
    AnswerFacts, ChatMessage, ChatSummary, Finish, Part, Role, TurnFailure, branch,
    context::{ContextOmission, WhenFull},
    text_parts,
};
use tierbar_core::{Error, bad_request};

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
    /// The question's files.
    pub attachments: Vec<NewAttachment>,
    /// With a question, the message before it; without, the question or one of its answers.
    pub parent: Parent,
    /// What answers this once, in place of the chat's model.
    pub model: Option<String>,
    /// What happens from now on once the context is full, if that changes.
    pub when_full: Option<WhenFull>,
    /// The answer `parent` is carried on in its own message, if it can be: see [`Store::unfinished_answer`].
    pub continues: bool,
}

/// A turn that has begun.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenedTurn {
    pub chat: ChatSummary,
    /// What answers.
    pub model: String,
    /// From the chat's first message to the question, or to the answer that is carried on.
    pub conversation: Vec<ChatMessage>,
    /// The summaries that answers of this chat were written with, those of other branches too.
    pub summaries: Vec<ContextOmission>,
    /// The message that is going to be the answer.
    pub answer: u64,
}

impl Store {
    /// Stores a turn's question and an answer without content, to be written by [`Self::append_answer`] and
    /// [`Self::write_answer`]. Both become the shown branch.
    ///
    /// # Errors
    /// [`Code::NotFound`] for an unknown chat or parent, [`Code::BadRequest`] if there is no question.
    pub async fn open_turn(&self, chat: &str, mut turn: NewTurn) -> Result<OpenedTurn, Error> {
        let chat = chat.to_owned();
        let blank = turn
            .text
            .as_deref()
            .is_some_and(|text| text.trim().is_empty());
        if blank && turn.attachments.is_empty() {
            return Err(bad_request("the message is empty"));
        }
        let once = chats::ChatFields {
            model: turn.model.take(),
            ..chats::ChatFields::default()
        };
        turn.model = once.checked()?.model;
        self.write(move |change| open(change, &chat, &turn)).await
    }

    /// Returns an answer that a turn can carry on: one that ended before the model did, with text.
    ///
    /// # Errors
    /// [`Code::NotFound`] for an unknown chat, [`Code::BadRequest`] for anything but such an answer.
    pub async fn unfinished_answer(
        &self,
        chat: &str,
        parent: Parent,
    ) -> Result<ChatMessage, Error> {
        let chat = chat.to_owned();
        self.read(move |connection| {
            chats::get(connection, &chat)?;
            let all = messages::of_chat(connection, &chat)?;
            let id = resolve(connection, &chat, parent)?;
            Ok(unfinished(&all, id).cloned()?)
        })
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
        self.write(move |change| match messages::written_by(change, &turn)? {
            Some(id) => messages::append(change, id, &pieces, &answer),
            None => Ok(()),
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
        self.write(move |change| match messages::written_by(change, &turn)? {
            Some(id) => messages::write(change, id, &parts, &answer),
            None => Ok(None),
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
        self.read(move |connection| messages::of_turn(connection, &chat, &turn))
            .await
    }

    /// Removes a turn's answer of which nothing has arrived. Its question keeps why, if the turn failed.
    pub async fn discard_answer(
        &self,
        turn: &str,
        failure: Option<TurnFailure>,
    ) -> Result<(), Error> {
        let turn = turn.to_owned();
        self.write(move |change| match messages::written_by(change, &turn)? {
            Some(id) => messages::discard(change, id, failure.as_ref()),
            None => Ok(()),
        })
        .await
    }
}

/// The message that a parent names.
fn resolve(connection: &Connection, chat: &str, parent: Parent) -> Outcome<Option<u64>> {
    match parent {
        Parent::Message(parent) => Ok(Some(parent)),
        Parent::Root => Ok(None),
        Parent::Leaf => chats::leaf(connection, chat),
    }
}

/// Checks that a message is an answer that can be carried on.
fn unfinished(all: &[ChatMessage], id: Option<u64>) -> Result<&ChatMessage, Error> {
    let refused = |message: &str, hint: &str| Err(bad_request(message).hint(hint));
    let named = id.and_then(|id| all.iter().find(|message| message.id == id));
    let Some(answer) = named.filter(|message| message.role == Role::Assistant) else {
        return refused(
            "there is no such answer in this chat",
            "name the answer to continue as \"parent\"",
        );
    };
    if !answer.answer.finish.is_some_and(Finish::can_continue) {
        return refused("the answer is complete", "ask for another one instead");
    }
    if answer.text().trim().is_empty() {
        return refused(
            "the answer has no text to continue",
            "ask for another one instead",
        );
    }
    let is_plain = |part: &Part| matches!(part, Part::Text { .. } | Part::Reasoning { .. });
    if !answer.parts.iter().all(is_plain) {
        return refused(
            "the answer has sources or calls of tools, which cannot be continued",
            "ask for another one instead",
        );
    }
    let path = branch(all, answer.id);
    if path.iter().all(|message| message.role != Role::User) {
        return refused("the answer has no question", "send a question as \"text\"");
    }
    Ok(answer)
}

/// Has a turn carry an answer on. What it has so far becomes the first of its pieces.
fn carry_on(change: &Transaction, chat: &str, turn: &NewTurn) -> Outcome<OpenedTurn> {
    let all = messages::of_chat_without_grades(change, chat)?;
    let id = resolve(change, chat, turn.parent)?;
    let answer = unfinished(&all, id)?;
    messages::check_room(change, chat, 0)?;
    messages::reopen(change, answer, &turn.id)?;
    opened_turn(change, chat, turn, &all, answer.id, answer.id)
}

fn open(change: &Transaction, chat: &str, turn: &NewTurn) -> Outcome<OpenedTurn> {
    let found = chats::get(change, chat)?;
    if turn.continues {
        return carry_on(change, chat, turn);
    }
    let text = turn.text.as_deref().unwrap_or_default();
    messages::check_room(change, chat, text.len())?;
    let mut all = messages::of_chat_without_grades(change, chat)?;
    let parent = resolve(change, chat, turn.parent)?;
    if let Parent::Message(parent) = turn.parent
        && !all.iter().any(|message| message.id == parent)
    {
        return Err(messages::no_message(parent).into());
    }
    let files = &turn.attachments;
    let most = attachments::CHAT_BYTES;
    let mut parts = attachments::parts_of_files(change, chat, &all, files, most)?;
    let question = match &turn.text {
        Some(text) => {
            attachments::add(change, files)?;
            let name = || Some(parts.iter().find_map(Part::file)?.name.clone());
            if found.title.is_empty()
                && let Some(title) = title::of_message(Role::User, text).or_else(name)
            {
                chats::title_if_untitled(change, chat, &title)?;
            }
            parts.extend(text_parts(text.clone()));
            let facts = AnswerFacts::default();
            let message = messages::insert(change, chat, parent, Role::User, parts, facts, None)?;
            let id = message.id;
            all.push(message);
            Some(id)
        }
        None => {
            let path = parent
                .map(|parent| branch(&all, parent))
                .unwrap_or_default();
            let last = path.iter().rfind(|message| message.role == Role::User);
            let last = last.map(|message| message.id);
            if let Some(asked) = all.iter_mut().find(|message| Some(message.id) == last) {
                asked.answer.failure = None;
                messages::forget_failure(change, asked.id)?;
            }
            last
        }
    };
    let question = question.ok_or_else(|| {
        let error = bad_request("there is no question to answer");
        error.hint("send the question as \"text\"")
    })?;
    let answer = messages::insert(
        change,
        chat,
        Some(question),
        Role::Assistant,
        Vec::new(),
        AnswerFacts::default(),
        Some(&turn.id),
    )?;
    opened_turn(change, chat, turn, &all, question, answer.id)
}

/// A turn that begins: `end` is the last message of its conversation, and `answer` what it writes.
fn opened_turn(
    change: &Transaction,
    chat: &str,
    turn: &NewTurn,
    all: &[ChatMessage],
    end: u64,
    answer: u64,
) -> Outcome<OpenedTurn> {
    chats::set_leaf(change, chat, answer)?;
    let fields = chats::ChatFields {
        when_full: turn.when_full,
        ..chats::ChatFields::default()
    };
    let chat = chats::update(change, chat, &fields)?;
    let summaries = all
        .iter()
        .filter_map(|message| message.answer.left_out.clone())
        .filter(|left| left.summary.is_some());
    Ok(OpenedTurn {
        model: turn.model.clone().unwrap_or_else(|| chat.model.clone()),
        chat,
        conversation: branch(all, end).into_iter().cloned().collect(),
        summaries: summaries.collect(),
        answer,
    })
}

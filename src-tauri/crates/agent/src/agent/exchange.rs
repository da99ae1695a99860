//! What goes into the agent's loop, and what comes out of it.

use crate::{
    calls::{Call, CallIntent, Surroundings},
    consent::{Answer, Change, General, Grants, InvalidReply, PermittedAct, Question, WebAddress},
};
use serde_json::Value;

/// How the model says what it wants, which is measured for each model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// By tool calls of its own.
    Calls,
    /// By one word and one line. `grammar`: whether the engine holds answers to a grammar.
    Text { grammar: bool },
}

/// Bounds of one turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    pub acts: u64,
    /// Tokens that the model generates.
    pub tokens: u64,
    /// Tokens that it reads, without those that its cache has.
    pub read: u64,
    /// Without the time that a question is open.
    pub seconds: u64,
    /// Refusals after which the agent stops asking, so that it cannot wear the user down.
    pub refusals: u64,
    pub questions: u64,
    /// Steps in a row that come to nothing: they cannot be read, carried out or prepared, or were done already.
    pub mistakes: u64,
    /// How often the same act is carried out.
    pub repeats: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            acts: 24,
            tokens: 32_000,
            read: 500_000,
            seconds: 900,
            refusals: 3,
            questions: 24,
            mistakes: 3,
            repeats: 2,
        }
    }
}

/// What a turn begins with.
#[derive(Debug)]
pub struct Task {
    pub question: String,
    pub chat: String,
    pub way: Way,
    pub surroundings: Surroundings,
    pub general: General,
    pub grants: Grants,
    pub bounds: Bounds,
}

/// What the model reads, behind the messages of the chat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    User(String),
    Assistant {
        text: String,
        calls: Vec<Call>,
    },
    /// What a tool has found, marked as data. `call`: the id of the call that it answers.
    Observation {
        call: Option<String>,
        text: String,
    },
}

/// A request to the model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelRequest {
    pub system: String,
    pub messages: Vec<Message>,
    /// In OpenAI's form; empty for none.
    pub tools: Vec<Value>,
    /// In llama.cpp's form.
    pub grammar: Option<String>,
    pub max_tokens: u64,
    /// Whether this is the answer for the person, to be shown as it comes.
    pub is_answer: bool,
}

/// What the model returned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reply {
    pub text: String,
    pub calls: Vec<Call>,
    /// Generated.
    pub tokens: u64,
    /// Read, without those that the cache had.
    pub read: u64,
}

/// What comes back.
#[derive(Debug)]
pub enum Input {
    Begin,
    Reply(Reply),
    /// The change that was to be prepared, or why there is none.
    Prepared(Result<Change, String>),
    Answer(Answer),
    /// What an act has found, or why it failed. Both are data.
    Done(Result<ActResult, String>),
    /// The person stops the turn.
    Stop,
}

/// What an act has found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ActResult {
    pub text: String,
    /// The addresses of a search provider's hits.
    pub addresses: Vec<WebAddress>,
    /// Whether it was done and came to nothing, as a command with an exit code other than 0. Its text says why.
    pub failed: bool,
}

impl ActResult {
    /// Text alone, of an act that succeeded.
    pub fn text(text: String) -> Self {
        Self {
            text,
            ..Self::default()
        }
    }
}

/// What is to be done next.
#[derive(Debug, PartialEq)]
pub enum Output {
    Ask(ModelRequest),
    /// To read a file and prepare its change.
    Prepare(CallIntent),
    Consent(Question),
    Do(PermittedAct),
    Finish(Finish),
}

/// How a turn has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finish {
    Answered(String),
    Stopped,
    /// A limit was reached and the model did not answer either; with the limit in words.
    Exhausted(String),
}

/// A step that the model wanted and that was not done, without a question to the person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedStep {
    pub tool: String,
    pub arguments: Value,
    pub why: String,
}

/// An input that does not belong to what is open.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MisplacedInput {
    #[error(transparent)]
    Answer(#[from] InvalidReply),
    #[error("nothing is open for this")]
    NotOpen,
}

/// When a step happens, and the random texts drawn for it. One text does not reveal the other.
#[derive(Debug, Clone, Copy, Default)]
pub struct Moment<'a> {
    /// In seconds.
    pub now: u64,
    /// Marks data for the model.
    pub nonce: &'a str,
    /// Names a question for the person.
    pub id: &'a str,
}

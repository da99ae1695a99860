//! A request for an answer, in OpenAI's form.

use super::{
    CHAT, TEXT,
    charge::Charge,
    content::{Content, RoutingFields},
    hints::Hints,
    metrics::Trace,
    original::{Form, Original},
    stream_meter::StreamReading,
};
use bytes::Bytes;
use serde_json::{Value, json};
use std::time::Instant;
use tierbar_core::{
    Error,
    lease::{KeepAlive, Purpose},
};

/// A request that has been read. Fields that are not named here are for who answers.
#[derive(Debug, Clone)]
pub struct Request {
    pub path: &'static str,
    pub hints: Hints,
    /// What answers: a tier, a model, a chain or `auto`.
    pub model: Option<String>,
    /// The answer is a stream of events.
    pub stream: bool,
    pub keep_alive: Option<KeepAlive>,
    pub arrived: Instant,
    /// `Background` if no client waits for the answer.
    pub purpose: Purpose,
    pub content: Content,
    /// The request in its client's form, if that is another than this.
    pub original: Option<Original>,
    /// What is made of the answer's events.
    pub reads: StreamReading,
    /// Set when the request is on its way to who answers.
    pub charge: Charge,
    pub trace: Trace,
}

impl Request {
    /// A chat, an object in the form of OpenAI's `/v1/chat/completions`, answered whole unless it says `stream`.
    ///
    /// # Errors
    /// `BadRequest` for anything but an object, or a field of the wrong type.
    pub fn chat(chat: impl Into<Value>) -> Result<Self, Error> {
        Self::of(CHAT, Hints::default(), chat.into())
    }

    /// As [`Self::chat`], answered token by token, with its usage.
    ///
    /// # Errors
    /// As [`Self::chat`].
    pub fn streamed_chat(chat: impl Into<Value>) -> Result<Self, Error> {
        let mut chat = chat.into();
        if let Some(fields) = chat.as_object_mut() {
            fields.insert("stream".to_owned(), true.into());
            fields.insert("stream_options".to_owned(), json!({"include_usage": true}));
        }
        Self::chat(chat)
    }

    /// # Errors
    /// `BadRequest` if the body is not a JSON object or a field has the wrong type.
    pub fn read(
        path: &'static str,
        hints: Hints,
        body: Bytes,
        arrived: Instant,
    ) -> Result<Self, Error> {
        let (content, routing) = Content::read(body)?;
        Ok(Self::new(path, hints, content, routing, arrived))
    }

    /// A request that a dialect has made of its own, an object.
    ///
    /// # Errors
    /// `BadRequest` for anything but an object, or a field of the wrong type.
    pub fn of(path: &'static str, hints: Hints, fields: Value) -> Result<Self, Error> {
        let (content, routing) = Content::from_fields(fields)?;
        Ok(Self::new(path, hints, content, routing, Instant::now()))
    }

    /// A request in another form, with the chat that says the same, or why there is none.
    ///
    /// # Errors
    /// `BadRequest` for a field of the wrong type.
    pub fn with_original(
        path: &'static str,
        hints: Hints,
        mut original: Original,
        chat: Result<Value, Error>,
    ) -> Result<Self, Error> {
        let chat = chat.unwrap_or_else(|error| {
            original.untranslatable = Some(error);
            original.outline().into()
        });
        Ok(Self {
            original: Some(original),
            ..Self::of(path, hints, chat)?
        })
    }

    /// Returns whether a model that reads no files gets a text in the place of each: clients of Anthropic's go on from it. Those of
    /// OpenAI's get an error.
    pub(crate) fn omits_files(&self) -> bool {
        let original = self.original.as_ref();
        original.is_some_and(|original| original.form == Form::Messages)
    }

    fn new(
        path: &'static str,
        hints: Hints,
        content: Content,
        routing: RoutingFields,
        arrived: Instant,
    ) -> Self {
        Self {
            path,
            hints,
            model: routing.model,
            stream: is_generated(path) && routing.stream == Some(true),
            keep_alive: routing.keep_alive,
            arrived,
            purpose: Purpose::Answer,
            content,
            original: None,
            reads: StreamReading::Nothing,
            charge: Charge::default(),
            trace: Trace::default(),
        }
    }
}

/// Whether the answer is generated text. Vectors of two models cannot be compared, and a context stays where it lies, so that no other
/// tier may stand in for these.
pub(crate) fn is_generated(path: &str) -> bool {
    path == CHAT || path == TEXT
}

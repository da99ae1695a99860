//! A request for an answer, in OpenAI's form.

use super::{CHAT, TEXT, hints::Hints};
use crate::http::body;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Instant;
use tierbar_core::{Error, lease::KeepAlive};

/// A request that has been read. The worker reads the fields that do not decide where it goes.
#[derive(Debug, Clone)]
pub struct Request {
    pub(crate) path: &'static str,
    pub(crate) hints: Hints,
    /// What answers: a tier, a model, a chain or `auto`.
    pub(crate) model: Option<String>,
    /// The answer is to come as events.
    pub(crate) stream: bool,
    pub(crate) keep_alive: Option<KeepAlive>,
    pub(crate) arrived: Instant,
    /// As it is sent on.
    pub(crate) body: Vec<u8>,
}

/// The fields that decide where a request goes.
#[derive(Debug, Deserialize)]
struct Fields {
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    stream: Option<bool>,
    #[serde(default)]
    keep_alive: Option<KeepAlive>,
}

impl Request {
    /// A chat, an object in the form of OpenAI's `/v1/chat/completions`, answered whole unless it says `stream`.
    ///
    /// # Errors
    /// `BadRequest` for anything but an object, or a field of the wrong type.
    pub fn chat(chat: impl Into<Value>) -> Result<Self, Error> {
        let body = chat.into().to_string().into_bytes();
        Self::read(CHAT, Hints::default(), body, Instant::now())
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

    /// The same request, sent where the hints of its headers say.
    #[must_use]
    pub(crate) fn with_hints(self, hints: Hints) -> Self {
        Self { hints, ..self }
    }

    /// # Errors
    /// `BadRequest` if the body is not a JSON object or a field has the wrong type.
    pub(crate) fn read(
        path: &'static str,
        hints: Hints,
        body: Vec<u8>,
        arrived: Instant,
    ) -> Result<Self, Error> {
        let fields: Fields = body::parse(&body)?;
        Ok(Self {
            path,
            hints,
            model: fields.model,
            stream: is_generated(path) && fields.stream == Some(true),
            keep_alive: fields.keep_alive,
            arrived,
            body,
        })
    }

    /// Whether the answer is generated text. Vectors of two models cannot be compared, and a context stays where it lies, so that no other
    /// tier may stand in for these.
    pub(crate) fn is_generated(&self) -> bool {
        is_generated(self.path)
    }
}

fn is_generated(path: &str) -> bool {
    path == CHAT || path == TEXT
}

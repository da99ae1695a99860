//! Anthropic's requests, answers and errors as the API's description shows them; what is translated of a request is described where it
//! is read.

// A request as it is described; nothing builds it.
#![allow(dead_code)]

use super::request::MessageFields;
use crate::openai::schema::KeepAlive;
use utoipa::{ToResponse, ToSchema};

tierbar_http::written!(AnthropicError, MessagesAnswer, TokenCount);

/// A request for a message. Other fields, such as llama-server's, are passed to the model's server.
#[derive(Debug, ToSchema)]
pub struct MessagesRequest {
    #[serde(flatten)]
    translated: MessageFields,
    /// Whether to answer as Anthropic's events.
    stream: Option<bool>,
    temperature: Option<f64>,
    top_p: Option<f64>,
    top_k: Option<i64>,
    keep_alive: Option<KeepAlive>,
}

/// The request was refused or failed, in Anthropic's form.
#[derive(Debug, ToResponse)]
pub(crate) struct AnthropicRefusal(AnthropicError);

//! Conversations as they are kept: the bodies of `/tierbar/v1/chats`.

use serde::{Deserialize, Serialize};

/// A conversation without its messages. Times are RFC 3339 in UTC.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ChatSummary {
    pub id: String,
    pub title: String,
    /// What the chat asks: a tier's name, or `auto`.
    pub model: String,
    pub created_at: String,
    pub updated_at: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Chat {
    #[serde(flatten)]
    pub summary: ChatSummary,
    /// Oldest first.
    pub messages: Vec<ChatMessage>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum Role {
    System,
    User,
    Assistant,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ChatMessage {
    pub role: Role,
    pub content: String,
    /// Assistant only: the tier and model that answered.
    #[serde(default)]
    pub tier: Option<String>,
    #[serde(default)]
    pub model: Option<String>,
    /// Assistant only: how the answer ended.
    #[serde(default)]
    pub finish: Option<Finish>,
    #[serde(default)]
    pub decode_tokens_per_second: Option<f64>,
    #[serde(default)]
    pub time_to_first_token_ms: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum Finish {
    /// The model said it was done.
    Stop,
    /// The token limit or the context was reached.
    Length,
    /// The user stopped it.
    Stopped,
    /// It broke off; the message's text is what had arrived.
    Error,
}

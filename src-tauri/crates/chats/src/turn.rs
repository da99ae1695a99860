//! What happens in a turn, and why one failed.

use crate::{
    ChatMessage, ChatSummary,
    agent::{ConsentQuestion, ConsentScope},
    context::ContextOmission,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{collections::BTreeMap, fmt};
use tierbar_core::{Code, Error};

/// What happens in a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TurnEvent {
    /// The answer waits: for its tier to load, for its first token, or for a summary of the oldest messages.
    Progress { stage: TurnStage },
    /// The context does not hold the chat: the answer is written without its oldest messages. The last such event counts.
    LeftOut {
        #[serde(flatten)]
        left_out: ContextOmission,
    },
    /// A tier has begun to answer.
    Started {
        tier: Option<String>,
        model: Option<String>,
        why: Option<String>,
        instead_of: Option<String>,
    },
    /// As [`Self::Text`], of what the model thinks before it answers.
    Reasoning {
        text: String,
        tokens: u32,
        decode_ms: u64,
    },
    /// What the answer goes on with.
    Text {
        text: String,
        /// Tokens so far, with those of the reasoning; of an agent, since the model was last asked.
        tokens: u32,
        /// The time since the first token, in milliseconds.
        decode_ms: u64,
    },
    /// The agent takes a step.
    ToolCall {
        /// Names the step within its message.
        id: String,
        name: String,
        /// JSON as text.
        arguments: String,
    },
    /// The agent waits for an answer to this question, at `…/turns/{turn}/consent`.
    Consent { question: ConsentQuestion },
    /// The question is answered.
    ConsentAnswered {
        /// The question's.
        id: String,
        /// `null`: it was refused.
        allow: Option<ConsentScope>,
    },
    /// What a step has found, or why it failed.
    ToolResult {
        /// The step's.
        id: String,
        text: String,
        failed: bool,
    },
    /// The last event of a turn: the answer is stored as this message.
    Finished { message: ChatMessage },
    /// The last event of a turn that broke off, with the message if anything had arrived.
    Failed {
        code: String,
        message: String,
        hint: Option<String>,
        /// The tier that did not answer, if it came to one.
        tier: Option<String>,
        /// After this time the same request may succeed, where a server has said so.
        retry_after_seconds: Option<u64>,
        /// The error's other figures, such as `spent` and `budget`.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        details: BTreeMap<String, Value>,
        answer: Option<ChatMessage>,
    },
}

impl TurnEvent {
    /// Returns the last event of a turn that an error broke off.
    pub fn failed(error: Error, tier: Option<String>, answer: Option<ChatMessage>) -> Self {
        let mut details = error.details;
        let wait = details.remove(Error::RETRY_AFTER);
        Self::Failed {
            code: error.code.as_str().to_owned(),
            message: error.message,
            hint: error.hint,
            tier,
            retry_after_seconds: wait.and_then(|seconds| seconds.as_u64()),
            details,
            answer,
        }
    }

    /// Returns the error that broke a turn off; `None` for other events. A code that this version does not know is `Internal`.
    pub fn to_error(&self) -> Option<Error> {
        let Self::Failed {
            code,
            message,
            hint,
            retry_after_seconds,
            details,
            ..
        } = self
        else {
            return None;
        };
        let error = Error {
            code: code_of(code),
            message: message.clone(),
            hint: hint.clone(),
            details: details.clone(),
        };
        Some(match retry_after_seconds {
            Some(seconds) => error.detail(Error::RETRY_AFTER, *seconds),
            None => error,
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum TurnStage {
    Load,
    Prefill,
    Summarize,
}

/// A turn that has begun: the answer of `POST /tierbar/v1/chats/{id}/turns`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = TurnBegun)]
pub struct StartedTurn {
    pub id: String,
    /// The chat as it is now.
    pub chat: ChatSummary,
    /// The question that it answers.
    pub question: ChatMessage,
    /// The id of the message that the answer becomes.
    pub answer: u64,
}

/// Why a turn failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TurnFailure {
    pub code: String,
    pub message: String,
    #[schema(required = true)]
    pub hint: Option<String>,
}

impl TurnFailure {
    /// Returns the error without its figures.
    pub fn to_error(&self) -> Error {
        Error {
            hint: self.hint.clone(),
            ..Error::new(code_of(&self.code), self.message.clone())
        }
    }
}

impl fmt::Display for TurnFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "; {hint}"),
            None => Ok(()),
        }
    }
}

impl From<&Error> for TurnFailure {
    fn from(error: &Error) -> Self {
        Self {
            code: error.code.as_str().to_owned(),
            message: error.message.clone(),
            hint: error.hint.clone(),
        }
    }
}

/// Returns a code by its name; `Internal` for one that this version does not know.
fn code_of(name: &str) -> Code {
    serde_json::from_value(name.into()).unwrap_or(Code::Internal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_turn_keeps_its_error_with_all_figures() {
        let error = Error::new(Code::BudgetSpent, "the budget is spent")
            .hint("raise it")
            .detail("spent", 4.98)
            .detail(Error::RETRY_AFTER, 60);
        let event = TurnEvent::failed(error.clone(), Some("sonnet".into()), None);
        let written = serde_json::to_value(&event).unwrap();
        assert_eq!(written["retry_after_seconds"], 60);
        assert_eq!(written["details"], serde_json::json!({"spent": 4.98}));
        let read: TurnEvent = serde_json::from_value(written).unwrap();
        assert_eq!(read.to_error(), Some(error));
        let waits = TurnEvent::Progress {
            stage: TurnStage::Load,
        };
        assert_eq!(waits.to_error(), None);
    }
}

//! Chats as they are kept: the bodies of `/tierbar/v1/chats`, and the events of a turn.

pub mod agent;
pub mod context;
pub mod export;
pub mod import;
pub mod lenient;
pub mod marks;
pub mod repetition;
pub mod settings;
pub mod thinking;
pub mod training;
mod turn;
pub mod written_calls;

pub use turn::{StartedTurn, TurnEvent, TurnFailure, TurnStage};

use context::{ContextOmission, ContextUse, WhenFull};
use serde::{Deserialize, Serialize};
use settings::AnswerSettings;
use tierbar_routing::grade::Grade;

/// A chat without its messages. Times are RFC 3339 in UTC.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ChatSummary {
    pub id: String,
    pub title: String,
    /// What answers: a tier's name, a model's id, or `auto`.
    pub model: String,
    pub created_at: String,
    pub updated_at: String,
    /// What happens once the context does not hold the chat.
    pub when_full: WhenFull,
    #[serde(flatten)]
    pub settings: AnswerSettings,
    /// Whether it is listed before the others.
    #[serde(default)]
    #[schema(required = true)]
    pub pinned: bool,
    /// The id of the turn that is running, if one is.
    #[schema(required = true)]
    pub turn: Option<String>,
    /// Where a search found its words; only in the answer to a search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<SearchMatch>,
}

/// Where a search found its words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = Found)]
pub struct SearchMatch {
    /// The newest message that has them; `null` if only the title does.
    pub message: Option<u64>,
    /// The text around them.
    pub excerpt: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Chat {
    #[serde(flatten)]
    pub summary: ChatSummary,
    /// The last message of the branch that is shown; none in an empty chat.
    pub leaf: Option<u64>,
    /// All branches, oldest message first.
    pub messages: Vec<ChatMessage>,
}

impl Chat {
    /// Returns why an answer broke off, or why a question has no answer; `None` for a question that was answered later.
    pub fn failure_of(&self, message: &ChatMessage) -> Option<String> {
        let failure = message.answer.failure.as_ref()?;
        let mut others = self.messages.iter();
        let what = match message.role {
            Role::Assistant => "Interrupted",
            _ if others.any(|other| other.parent == Some(message.id)) => return None,
            _ => "No answer",
        };
        Some(format!("{what}: {failure}"))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    System,
    User,
    Assistant,
}

/// One message. The messages of a chat form a tree: an edited question and a regenerated answer stand beside the first, with the
/// same parent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ChatMessage {
    pub id: u64,
    /// The message before it; none for the first.
    pub parent: Option<u64>,
    pub role: Role,
    pub parts: Vec<Part>,
    #[serde(flatten)]
    pub answer: AnswerFacts,
}

/// What is known of an answer; of a question, at most why it has none.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default)]
pub struct AnswerFacts {
    /// The tier and model that answered.
    #[schema(required = true)]
    pub tier: Option<String>,
    #[schema(required = true)]
    pub model: Option<String>,
    /// Why the router chose the tier, or why the steps of a chain before it did not answer.
    #[schema(required = true)]
    pub why: Option<String>,
    /// The chain's first step, if another one answered.
    #[schema(required = true)]
    pub instead_of: Option<String>,
    /// How the answer ended; none while it is being written.
    #[schema(required = true)]
    pub finish: Option<Finish>,
    #[schema(required = true)]
    pub decode_tokens_per_second: Option<f64>,
    /// From the question; of an agent's answer, from the last time that the model was asked, without steps and questions before it.
    #[schema(required = true)]
    pub time_to_first_token_ms: Option<f64>,
    /// Where its time went.
    #[schema(required = true)]
    pub times: Option<AnswerTimes>,
    /// Of a mixture whose experts are read when they are chosen.
    #[schema(required = true)]
    pub experts: Option<ExpertReads>,
    /// How much of its context the answer has used, where the engine says how much it holds.
    #[schema(required = true)]
    pub context: Option<ContextUse>,
    /// The messages that its prompt was without.
    #[schema(required = true)]
    pub left_out: Option<ContextOmission>,
    /// What the owner thinks of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grade: Option<Grade>,
    /// Why the turn that wrote it failed; of a question, why the last one left no answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<TurnFailure>,
}

/// Where the time of an answer went, in milliseconds. What was not measured is `null`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default)]
pub struct AnswerTimes {
    /// The wait for its tier to load; `null` if it was loaded already.
    #[schema(required = true)]
    pub load_ms: Option<f64>,
    /// Reading the prompt, as the engine measures it.
    #[schema(required = true)]
    pub prefill_ms: Option<f64>,
    /// Generating the answer: as the engine measures it, or since the first token.
    #[schema(required = true)]
    pub decode_ms: Option<f64>,
    /// The part of the generation in which the model thought before it answered; `null` if it did not.
    #[schema(required = true)]
    pub thinking_ms: Option<f64>,
    /// What speculation has saved of the generation, if it was on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speculation: Option<Speculation>,
}

/// Tokens of an answer that were predicted ahead, and whether that has paid.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Speculation {
    /// Predicted tokens.
    pub drafted: u64,
    /// Those of them that the model chose itself.
    pub accepted: u64,
    /// Those of them that a draft model predicted; earlier text predicted the others.
    pub by_model: u64,
    /// The time that it saved, in milliseconds; below 0, the time that it cost.
    pub saved_ms: f64,
    /// Whether predictions were left unused because they would not have paid, or might have changed a greedy answer.
    pub rested: bool,
}

/// What the experts of a mixture larger than memory have cost, for the prompt and the answer; or the layers of a dense model.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ExpertReads {
    /// The part of the chosen experts that was in memory, from 0 to 1.
    pub hit_rate: f64,
    /// What was read from the disk.
    pub read_bytes: u64,
    /// The time that computing has waited for the disk; `null` where the system reads, which does not tell.
    #[schema(required = true)]
    pub wait_ms: Option<f64>,
    /// Tokens of the prompt and the answer that were evaluated meanwhile.
    #[serde(default)]
    pub tokens: u64,
    /// Whether these are the layers of a dense model.
    #[serde(default)]
    pub layers: bool,
    /// Set if the answer may differ from the model's own.
    #[schema(required = true)]
    pub approximated: Option<AnswerDeviation>,
}

/// How far an answer was from the model's own, while it was generated.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = Approximated)]
pub struct AnswerDeviation {
    /// The part of the chosen experts that were replaced or left out, from 0 to 1.
    pub changed: f64,
    /// The part of the router's weight that they had, less that of their substitutes; unknown where a token always uses fewer
    /// experts.
    #[schema(required = true)]
    pub lost_weight: Option<f64>,
}

/// A piece of a message. A file's bytes are stored beside the chat's messages, by their hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    Text {
        text: String,
    },
    /// What the model thought before it answered.
    Reasoning {
        text: String,
    },
    Image {
        file: Attachment,
    },
    Audio {
        file: Attachment,
    },
    File {
        file: Attachment,
    },
    /// A tool that the model called before it went on. Without a result, it has not ended.
    ToolCall {
        /// Names the call within its message.
        id: String,
        name: String,
        /// What the model wrote: JSON, or what is none.
        arguments: String,
    },
    /// What a tool returned.
    ToolResult {
        /// The call that it answers.
        id: String,
        text: String,
        /// The tool did not do it; the text says why.
        #[serde(default)]
        #[schema(required = true)]
        failed: bool,
    },
    Sources {
        sources: Vec<WebSource>,
    },
}

/// What a call or a result takes besides its texts, stored and in memory.
pub(crate) const AROUND_A_CALL: usize = 128;

impl Part {
    /// Returns the file that it is, if it is one.
    pub fn file(&self) -> Option<&Attachment> {
        match self {
            Self::Image { file } | Self::Audio { file } | Self::File { file } => Some(file),
            _ => None,
        }
    }

    /// Returns the bytes of its texts. A call or a result counts without any, too.
    pub fn text_size(&self) -> usize {
        match self {
            Self::Text { text } | Self::Reasoning { text } => text.len(),
            Self::ToolResult { text, .. } => AROUND_A_CALL + text.len(),
            Self::ToolCall {
                name, arguments, ..
            } => AROUND_A_CALL + name.len() + arguments.len(),
            Self::Sources { sources } => sources
                .iter()
                .map(|source| source.title.len() + source.url.len())
                .sum(),
            Self::Image { .. } | Self::Audio { .. } | Self::File { .. } => 0,
        }
    }
}

/// A file that belongs to a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Attachment {
    /// In hexadecimal.
    pub sha256: String,
    pub media_type: String,
    pub name: String,
    pub bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct WebSource {
    pub title: String,
    pub url: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Finish {
    /// The model ended its answer.
    Stop,
    /// The same, of an agent that took no step and asked for none.
    #[serde(rename = "no_step")]
    NoStep,
    /// The token limit or the context was reached.
    Length,
    /// The user stopped it.
    Stopped,
    /// It broke off; the message holds what had arrived.
    Error,
    /// The host stopped it, because it repeated the same passage.
    Repetition,
}

impl Finish {
    /// Returns whether the answer ended before the model ended it, so that it can be carried on.
    pub fn can_continue(self) -> bool {
        match self {
            Self::Stop | Self::NoStep => false,
            Self::Length | Self::Stopped | Self::Error | Self::Repetition => true,
        }
    }
}

impl ChatMessage {
    /// The text of its text parts.
    pub fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            Part::Text { text } => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }
}

/// The parts of a message that is text alone; none for an empty one.
pub fn text_parts(text: String) -> Vec<Part> {
    if text.is_empty() {
        Vec::new()
    } else {
        vec![Part::Text { text }]
    }
}

/// The parts of an answer with this text and this reasoning.
pub fn answer_parts(text: String, reasoning: String) -> Vec<Part> {
    let mut parts = Vec::new();
    if !reasoning.is_empty() {
        parts.push(Part::Reasoning { text: reasoning });
    }
    parts.extend(text_parts(text));
    parts
}

/// The messages from the chat's first to the one with this id, in that order; empty if there is no such message.
pub fn branch(messages: &[ChatMessage], leaf: u64) -> Vec<&ChatMessage> {
    let mut path = Vec::new();
    let mut next = Some(leaf);
    // A parent is older than its children, so that even a damaged tree ends.
    while let Some(message) = next.and_then(|id| messages.iter().find(|message| message.id == id)) {
        next = message.parent.filter(|parent| *parent < message.id);
        path.push(message);
    }
    path.reverse();
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(id: u64, parent: Option<u64>) -> ChatMessage {
        ChatMessage {
            id,
            parent,
            role: Role::User,
            parts: text_parts(id.to_string()),
            answer: AnswerFacts::default(),
        }
    }

    #[test]
    fn a_branch_runs_from_the_first_message_to_the_leaf() {
        let messages = [
            message(1, None),
            message(2, Some(1)),
            message(3, Some(1)),
            message(4, Some(3)),
        ];
        let ids = |leaf| -> Vec<u64> {
            let branch = branch(&messages, leaf).into_iter();
            branch.map(|message| message.id).collect()
        };
        assert_eq!(ids(4), [1, 3, 4]);
        assert_eq!(ids(2), [1, 2]);
        assert!(ids(9).is_empty());
    }

    #[test]
    fn a_cycle_of_parents_ends() {
        let messages = [message(1, Some(2)), message(2, Some(1))];
        assert_eq!(branch(&messages, 2).len(), 2);
    }

    #[test]
    fn parts_carry_their_type_and_a_message_its_text() {
        let part = Part::ToolCall {
            id: "a".into(),
            name: "search".into(),
            arguments: "{}".into(),
        };
        let json = serde_json::to_value(&part).unwrap();
        assert_eq!(json["type"], "tool_call");
        let parts = vec![
            Part::Reasoning { text: "Hm".into() },
            Part::Text { text: "Pa".into() },
            part,
            Part::Text { text: "ris".into() },
        ];
        let message = ChatMessage {
            parts,
            ..message(1, None)
        };
        assert_eq!(message.text(), "Paris");
    }
}

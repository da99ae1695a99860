//! The answers of tasks as the API's description shows them; the requests are described where they are read.

// These types describe; nothing builds them.
#![allow(dead_code)]

use serde_json::Value;
use tierbar_http::schema::ErrorBody;
use tierbar_tasks::{aggregate::Aggregate, triage::MessageType};
use utoipa::ToSchema;

/// What a task reads.
#[derive(ToSchema)]
#[serde(untagged)]
pub(super) enum TaskMessage {
    Text(String),
    /// OpenAI's `text`, `image_url` and `input_audio` parts, or Anthropic's `text` and `image` blocks.
    #[schema(value_type = Vec<Object>)]
    Parts(Value),
    Message(TaskMessageContent),
}

/// A message in any dialect's form.
#[derive(ToSchema)]
pub(super) struct TaskMessageContent {
    /// A text, or parts.
    #[schema(value_type = Object)]
    content: Value,
    /// Images in base64, as in Ollama's API.
    #[schema(required = false)]
    images: Vec<String>,
}

/// One answer, or with several texts one for each.
#[derive(ToSchema)]
#[serde(untagged)]
pub(super) enum TaskAnswer<T> {
    One(T),
    Many(Batch<T>),
}

/// The answers in the order of the request.
#[derive(ToSchema)]
pub(super) struct Batch<T> {
    results: Vec<BatchResult<T>>,
    /// The number of texts that could not be answered.
    failed: u64,
    usage: TaskUsage,
    /// An estimate of the tokens that need not go to a cloud.
    saved: u64,
}

/// One text's answer, or why there is none.
#[derive(ToSchema)]
#[serde(untagged)]
pub(super) enum BatchResult<T> {
    Answer(T),
    Error(ErrorBody),
}

/// The kind of a message, and how urgent it is.
#[derive(ToSchema)]
pub(super) struct Triage {
    #[schema(rename = "type", inline)]
    kind: MessageType,
    /// 0 whenever, 1 this week, 2 today, 3 now.
    #[schema(minimum = 0, maximum = 3)]
    urgency: u8,
    /// Whether a small model would do badly at it. A greeting or a message that only informs needs no cloud, by rule; of the
    /// others the model estimates it. If the model has failed the triage test, only a plain greeting needs none.
    needs_cloud: bool,
    /// Why a cloud is needed or not.
    why: String,
    /// For an e-mail: lines with its subject, type and urgency, to put before what is passed on.
    #[schema(required = false)]
    header: String,
    #[serde(flatten)]
    task: TaskFields,
}

/// A shorter text, compared with its source.
#[derive(ToSchema)]
#[schema(as = Compressed)]
pub(super) struct Compression {
    text: String,
    /// The text's number of words.
    words: u64,
    /// Whether the text has no more words than requested.
    fits: bool,
    /// Numbers, dates and names of the source that the text contains.
    kept: Vec<String>,
    /// Those that it lacks.
    missing: Vec<String>,
    /// False for texts in which capitals do not mark names.
    names_checked: bool,
    /// How often the model was asked; 0 for a source that was short enough.
    attempts: u32,
    /// Whether the model gave no usable text, and these are sentences of the source, chosen by rule.
    fallback: bool,
    /// Whether the model did not reach an end; the text is its whole sentences up to there.
    cut: bool,
    #[serde(flatten)]
    task: TaskFields,
}

/// A summary.
#[derive(ToSchema)]
pub(super) struct Summary {
    summary: String,
    /// The summary's number of words.
    words: u64,
    /// The pieces that the model read, of the text and of notes.
    pieces: u64,
    /// The rounds of notes and summary; 1 for a text that fits into the context, 0 for a fallback.
    levels: u32,
    /// Whether the model gave no usable summary, and these are sentences of the text, chosen by rule.
    fallback: bool,
    /// The notes that the model did not finish.
    cut: u64,
    #[serde(flatten)]
    task: TaskFields,
}

/// A brief, and the counts that it is written from.
#[derive(ToSchema)]
pub(super) struct Brief {
    brief: String,
    /// The brief's number of words.
    words: u64,
    /// Whether the model did not reach an end; the brief is its whole sentences up to there.
    cut: bool,
    /// Whether the model gave no usable brief, and this is the list of counts.
    fallback: bool,
    /// Lines with a subject, type and urgency, by rule from the counts.
    header: String,
    aggregate: Aggregate,
    #[serde(flatten)]
    task: TaskFields,
}

/// What every task's answer has.
#[derive(ToSchema)]
pub(super) struct TaskFields {
    /// The tier that answered; null if no model was needed.
    tier: Option<String>,
    /// Its model.
    model: Option<String>,
    usage: TaskUsage,
    /// An estimate of the tokens that need not go to a cloud.
    saved: u64,
    /// For chains: which tiers were tried, and why others did not answer.
    #[schema(value_type = Object, required = false)]
    tierbar: Value,
}

/// The tokens of all requests to the model.
#[derive(ToSchema)]
pub(super) struct TaskUsage {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: u64,
}

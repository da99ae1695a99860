//! Ollama's requests and answers as the API's description shows them; the requests that are read into types are described there.

// These types describe; nothing builds them.
#![allow(dead_code)]

use serde_json::Value;
use std::collections::BTreeMap;
use tierbar_http::constant;
use utoipa::{ToResponse, ToSchema};

/// An error in Ollama's form.
#[derive(Debug, ToSchema)]
#[schema(as = OllamaError)]
pub struct ErrorBody {
    /// What happened, and what to do.
    error: String,
    /// The stable code; clients may match on it.
    #[schema(examples("context_length_exceeded"))]
    code: String,
    /// What to do.
    #[schema(required = false)]
    hint: String,
    /// The figures of the message, such as `prompt_tokens`.
    #[serde(flatten)]
    figures: BTreeMap<String, Value>,
}

/// The request was refused or failed, in Ollama's form.
#[derive(Debug, ToResponse)]
pub(crate) struct OllamaRefusal(ErrorBody);

/// The version of Ollama whose API this is, and Tierbar's own.
#[derive(Debug, ToSchema)]
pub(super) struct OllamaVersion {
    #[schema(examples("0.12.11"))]
    version: String,
    tierbar: String,
}

/// Everything that a request can name.
#[derive(Debug, ToSchema)]
pub(super) struct OllamaModels {
    #[schema(inline)]
    models: Vec<OllamaModel>,
}

#[derive(Debug, ToSchema)]
struct OllamaModel {
    name: String,
    model: String,
    /// When the file was changed; 1970 without a file.
    modified_at: String,
    /// The file's size in bytes; 0 without a file.
    size: u64,
    /// The file's SHA-256 if known, otherwise another identifier of it.
    digest: String,
    details: OllamaDetails,
    /// As `/api/show` has them.
    capabilities: Vec<String>,
}

/// What a model's file says about it; empty without a file.
#[derive(Debug, ToSchema)]
struct OllamaDetails {
    parent_model: String,
    #[schema(examples("gguf"))]
    format: String,
    family: String,
    families: Vec<String>,
    #[schema(examples("8.0B"))]
    parameter_size: String,
    #[schema(examples("Q4_K_M"))]
    quantization_level: String,
}

/// The tiers of this machine that are loaded.
#[derive(Debug, ToSchema)]
#[schema(as = OllamaLoaded)]
pub(super) struct OllamaLoadedTiers {
    #[schema(inline)]
    models: Vec<OllamaLoadedTier>,
}

#[derive(Debug, ToSchema)]
struct OllamaLoadedTier {
    name: String,
    model: String,
    /// The measured memory in bytes.
    size: u64,
    /// The part of it that is planned for the GPU.
    size_vram: u64,
    digest: String,
    details: OllamaDetails,
    /// When the tier unloads unless it is requested before; in 2318 while it answers or if it stays loaded.
    expires_at: String,
    /// The tier's context, in tokens.
    context_length: u32,
    /// The tier's `model` and `state`.
    #[schema(value_type = Object)]
    tierbar: Value,
}

/// One model.
#[derive(Debug, ToSchema)]
#[schema(as = OllamaShown)]
pub(super) struct OllamaModelDetails {
    modified_at: String,
    details: OllamaDetails,
    /// The keys of the file's header. Its `….context_length` is the tier's context, at most what the model was trained for.
    #[schema(value_type = Object)]
    model_info: Value,
    /// `completion`, `tools`, `vision` for images, `audio` for sound, `thinking`, or `embedding`.
    capabilities: Vec<String>,
    parameters: String,
    /// Always empty.
    template: String,
    /// Always empty.
    modelfile: String,
    /// The `tier`, its `model` and its `state`.
    #[schema(value_type = Object)]
    tierbar: Value,
}

/// A line of a chat's answer, or the whole answer.
#[derive(Debug, ToSchema)]
pub(super) struct OllamaChatAnswer {
    message: OllamaAnswerMessage,
    #[serde(flatten)]
    ending: OllamaEnding,
}

/// The assistant's message.
#[derive(Debug, ToSchema)]
struct OllamaAnswerMessage {
    role: String,
    content: String,
    /// The model's thoughts.
    #[schema(required = false)]
    thinking: String,
    /// The calls of tools.
    #[schema(value_type = Vec<Object>, required = false)]
    tool_calls: Value,
}

/// A line of a completion, or the whole completion.
#[derive(Debug, ToSchema)]
pub(super) struct OllamaGenerateAnswer {
    response: String,
    /// The model's thoughts.
    #[schema(required = false)]
    thinking: String,
    #[serde(flatten)]
    ending: OllamaEnding,
}

/// What every line has, and the figures that the last one has. Durations are in nanoseconds.
#[derive(Debug, ToSchema)]
struct OllamaEnding {
    model: String,
    created_at: String,
    /// Whether this is the last line.
    done: bool,
    /// `stop`, `length`, `load` or `unload`.
    #[schema(required = false)]
    done_reason: String,
    /// The log probabilities of the line's tokens.
    #[schema(value_type = Vec<Object>, required = false)]
    logprobs: Value,
    /// From the request's arrival on.
    #[schema(required = false)]
    total_duration: u64,
    /// What was neither prefill nor decode: loading and waiting.
    #[schema(required = false)]
    load_duration: u64,
    /// The prompt's tokens.
    #[schema(required = false)]
    prompt_eval_count: u64,
    /// What prefill took.
    #[schema(required = false)]
    prompt_eval_duration: u64,
    /// The answer's tokens.
    #[schema(required = false)]
    eval_count: u64,
    /// What decode took.
    #[schema(required = false)]
    eval_duration: u64,
    /// For chains: which tiers were tried, and why others did not answer.
    #[schema(value_type = Object, required = false)]
    tierbar: Value,
}

/// A text, or several.
#[derive(Debug, ToSchema)]
#[schema(as = OllamaEmbedInput)]
#[serde(untagged)]
pub(super) enum EmbedInput {
    Text(String),
    Texts(Vec<String>),
}

/// A download that is complete.
#[derive(Debug, ToSchema)]
#[schema(as = OllamaPulled)]
pub(super) struct OllamaPullAnswer {
    #[schema(inline)]
    status: PulledStatus,
}

constant!(PulledStatus = "success");

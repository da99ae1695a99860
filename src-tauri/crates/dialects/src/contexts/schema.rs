//! Saved contexts as the API's description shows them.

// These types describe; nothing builds them.
#![allow(dead_code)]

use crate::openai::schema::Message;
use serde_json::Value;
use tierbar_core::config::ContextForm;
use tierbar_http::constant;
use utoipa::ToSchema;

/// A conversation to save: messages, a prompt, or with neither the tier's last conversation. Other fields are as in a chat.
#[derive(Debug, ToSchema)]
pub struct ContextSave {
    name: String,
    /// Whether to replace another context of this name; else that is a `conflict`.
    #[schema(required = false)]
    replace: bool,
    /// A tier, a model's id, or `auto`, which is the default.
    model: Option<String>,
    #[schema(required = false)]
    messages: Vec<Message>,
    #[schema(required = false)]
    prompt: String,
    /// Instead of the form in the configuration's `contexts.form`. A state without a compact form is saved exactly.
    form: Option<ContextForm>,
}

/// A saved context that is now in memory.
#[derive(Debug, ToSchema)]
pub struct SavedContext {
    name: String,
    model: String,
    tokens: u64,
    /// Of the file.
    bytes: u64,
    /// Of the state once it is in memory.
    raw_bytes: u64,
    /// In seconds since 1970.
    created: u64,
    form: ContextForm,
    /// What the context fits: its model, chat template, KV type and engine.
    #[schema(value_type = Object, required = false)]
    key: Value,
    /// What prefill took, as in a chat's answer.
    #[schema(value_type = Object, required = false)]
    timings: Value,
}

/// All saved contexts, newest first.
#[derive(Debug, ToSchema)]
pub(super) struct Contexts {
    #[schema(inline)]
    object: ListObject,
    data: Vec<Context>,
}

constant!(ListObject = "list");

/// What is known of a saved context without loading it.
#[derive(Debug, ToSchema)]
#[schema(as = ContextEntry)]
pub struct Context {
    name: String,
    model: String,
    tokens: u64,
    /// Of the file.
    bytes: u64,
    /// Of the state once it is in memory.
    raw_bytes: u64,
    /// In seconds since 1970.
    created: u64,
    form: ContextForm,
    /// The type of the KV cache, such as `q8_0`.
    kv_cache: String,
}

/// A saved context that is deleted.
#[derive(Debug, ToSchema)]
pub struct ContextDeleted {
    name: String,
    /// Always true.
    deleted: bool,
    /// Whether the store is a bucket with versioning, which keeps older versions of the encrypted copy.
    versions_kept: bool,
}

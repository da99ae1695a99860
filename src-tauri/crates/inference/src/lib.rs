//! From a request in OpenAI's form to its answer. A server that speaks the client's own dialect gets the request as it came, by its
//! [`original`], and its answer passes. [`Inference::ask`] is the way for everything inside the host.
//!
//! `request` and `content` are read once; `dispatch` finds who answers, by `route`, `auto` and `chain`; `relay` holds the lease, calls
//! the worker through `send`, and passes its stream on, which `stream_meter` counts as it passes; `ask` turns the same stream into `events`.

// What only descriptions of the API use is linted with them (src-tauri/crates/openapi).
#![cfg_attr(not(openapi), allow(dead_code, unused_imports))]

pub mod answers;
pub mod ask;
pub mod auto;
pub mod body;
pub mod caller;
pub mod calls;
pub mod chain;
pub mod charge;
mod chat_calls;
mod chat_text;
pub mod clouds;
pub mod content;
pub mod dispatch;
pub mod endpoints;
pub mod error;
mod event_reader;
pub mod events;
pub mod exams;
pub mod fields;
pub mod files;
pub mod headers;
pub mod held;
pub mod hints;
mod limits;
pub mod lines;
pub mod media;
pub mod metrics;
pub mod models;
pub mod moment;
pub mod original;
pub mod pieces;
pub mod prompts;
pub mod relay;
pub mod request;
pub mod response;
pub mod route;
mod send;
pub mod services;
pub mod source;
pub mod speed;
pub mod stream_meter;
#[cfg(test)]
mod testing;
pub mod upstream;
mod vector_encoding;
pub mod vectors;
pub mod wire;

use auto::Auto;
use endpoints::EndpointStates;
use metrics::Metrics;
use services::{Services, models::Models};
use speed::SpeedMeter;
use std::sync::Arc;
use tierbar_core::lease::Tiers;
use tierbar_fetch::Remote;
use tierbar_secrets::Secrets;
use tokio_util::sync::CancellationToken;

pub const CHAT: &str = "/v1/chat/completions";
/// Counts the tokens of a chat; spoken between the inference and Tierbar's worker alone.
pub const TOKENS: &str = "/v1/chat/tokens";
pub const TEXT: &str = "/v1/completions";
pub const EMBEDDINGS: &str = "/v1/embeddings";
pub const RERANK: &str = "/v1/rerank";

/// What answers are made from: the tiers and the ways to them, and what is learnt and counted on the way. It sees neither keys nor the
/// token nor the queue.
#[derive(Debug)]
pub struct Inference {
    pub tiers: Arc<dyn Tiers>,
    pub services: Arc<dyn Services>,
    pub models: Arc<dyn Models>,
    pub secrets: Secrets,
    /// The way to tiers that are endpoints.
    pub remote: Remote,
    pub speed: SpeedMeter,
    pub auto: Auto,
    pub endpoints: EndpointStates,
    pub metrics: Metrics,
    /// Ends with the host.
    pub closing: CancellationToken,
}

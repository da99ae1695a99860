//! From a request in OpenAI's form to its answer. A server that speaks the client's own dialect gets the request as it came, by its
//! [`original`], and its answer passes. [`Inference::ask`] is the way for everything inside the host.
//!
//! `request` and `content` are read once; `dispatch` finds who answers, by `route`, `auto` and `chain`; `relay` holds the lease, calls
//! the worker through `send`, and passes its stream on, which `stream_meter` counts as it passes; `ask` turns the same stream into `events`.

pub(crate) mod answers;
pub(crate) mod ask;
pub(crate) mod auto;
pub(crate) mod caller;
pub(crate) mod calls;
pub(crate) mod chain;
pub(crate) mod charge;
pub(crate) mod clouds;
pub(crate) mod content;
pub(crate) mod dispatch;
pub(crate) mod endpoints;
pub(crate) mod events;
pub(crate) mod fields;
pub(crate) mod hints;
pub(crate) mod json_edit;
mod limits;
pub(crate) mod lines;
pub(crate) mod media;
pub(crate) mod models;
pub(crate) mod original;
mod prompts;
pub(crate) mod relay;
mod repair;
pub(crate) mod request;
pub(crate) mod route;
mod send;
pub(crate) mod source;
pub(crate) mod speed;
pub(crate) mod stream_meter;
pub(crate) mod upstream;
pub(crate) mod wire;

use crate::{
    metrics::Metrics,
    services::{Services, models::Models},
};
use auto::Auto;
use endpoints::EndpointStates;
use speed::SpeedMeter;
use std::sync::Arc;
use tierbar_core::lease::Tiers;
use tierbar_fetch::Remote;
use tierbar_secrets::Secrets;
use tokio_util::sync::CancellationToken;

pub(crate) const CHAT: &str = "/v1/chat/completions";
/// Counts the tokens of a chat; spoken between the inference and Tierbar's worker alone.
pub(crate) const TOKENS: &str = "/v1/chat/tokens";
pub(crate) const TEXT: &str = "/v1/completions";
pub(crate) const EMBEDDINGS: &str = "/v1/embeddings";
pub(crate) const RERANK: &str = "/v1/rerank";

/// What answers are made from: the tiers and the ways to them, and what is learnt and counted on the way. It sees neither keys nor the
/// token nor the queue.
#[derive(Debug)]
pub struct Inference {
    pub(crate) tiers: Arc<dyn Tiers>,
    pub(crate) services: Arc<dyn Services>,
    pub(crate) models: Arc<dyn Models>,
    pub(crate) secrets: Secrets,
    /// The way to tiers that are endpoints.
    pub(crate) remote: Remote,
    pub(crate) speed: SpeedMeter,
    pub(crate) auto: Auto,
    pub(crate) endpoints: EndpointStates,
    pub(crate) metrics: Metrics,
    /// Ends with the host.
    pub(crate) closing: CancellationToken,
}

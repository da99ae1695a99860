//! Work that is made of requests: turns of chats, answers from documents, tasks with an answer of a fixed form, the question at the
//! end of a set-up, and the queue of requests that are answered later.

// What only descriptions of the API use is linted with them (src-tauri/crates/openapi).
#![cfg_attr(not(openapi), allow(dead_code, unused_imports))]

pub mod answers;
pub mod documents;
mod exams;
pub mod mcp;
pub mod queue;
mod storing;
pub mod tasks;
pub mod turns;

use answers::Answers;
use queue::JobQueue;
use std::sync::Arc;
use tierbar_edge::keys::Keys;
use tierbar_inference::Inference;
use tierbar_store::Store;
use turns::Turns;

/// What jobs are done with.
#[derive(Debug)]
pub struct Jobs {
    pub inference: Arc<Inference>,
    /// Admits turns, and knows who left a request here.
    pub keys: Arc<Keys>,
    pub store: Store,
    pub queue: JobQueue,
    pub turns: Turns,
    pub answers: Answers,
}

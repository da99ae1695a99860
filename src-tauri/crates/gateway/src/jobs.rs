//! Work that is made of requests: turns of chats, answers from documents, tasks with an answer of a fixed form, the question at the end of a set-up, and the queue of requests that are answered later.

pub(crate) mod answers;
pub(crate) mod documents;
pub(crate) mod mcp;
pub(crate) mod queue;
pub(crate) mod tasks;
pub(crate) mod turns;

use crate::{edge::keys::Keys, inference::Inference};
use answers::Answers;
use queue::JobQueue;
use std::sync::Arc;
use tierbar_store::Store;
use turns::Turns;

/// What jobs are done with.
#[derive(Debug)]
pub(crate) struct Jobs {
    pub(crate) inference: Arc<Inference>,
    /// Admits turns, and knows who left a request here.
    pub(crate) keys: Arc<Keys>,
    pub(crate) store: Store,
    pub(crate) queue: JobQueue,
    pub(crate) turns: Turns,
    pub(crate) answers: Answers,
}

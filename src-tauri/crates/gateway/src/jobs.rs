//! Work that is made of requests: turns of chats, tasks with an answer of a fixed form, and the queue of requests that are answered later.

pub(crate) mod queue;
pub(crate) mod tasks;
pub(crate) mod turns;

use crate::{
    edge::keys::Keys,
    inference::{Inference, caller::Accounts},
};
use queue::JobQueue;
use std::sync::Arc;
use tierbar_store::Store;
use turns::Turns;

/// What jobs are done with.
#[derive(Debug)]
pub(crate) struct Jobs {
    pub(crate) inference: Arc<Inference>,
    /// Who left a request here, by name.
    pub(crate) accounts: Arc<dyn Accounts>,
    /// Admits turns.
    pub(crate) keys: Arc<Keys>,
    pub(crate) store: Store,
    pub(crate) queue: JobQueue,
    pub(crate) turns: Turns,
}

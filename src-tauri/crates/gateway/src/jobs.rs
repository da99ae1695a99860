//! Work that is made of requests: tasks with an answer of a fixed form, and the queue of requests that are answered later.

pub(crate) mod queue;
pub(crate) mod tasks;

use crate::inference::{Inference, caller::Accounts};
use queue::Queue;
use std::sync::Arc;
use tierbar_store::Store;

/// What jobs are done with.
#[derive(Debug)]
pub(crate) struct Jobs {
    pub(crate) inference: Arc<Inference>,
    /// Who left a request here, by name.
    pub(crate) accounts: Arc<dyn Accounts>,
    pub(crate) store: Store,
    pub(crate) queue: Queue,
}

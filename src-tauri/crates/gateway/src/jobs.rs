//! Work that is made of requests: tasks with an answer of a fixed form, and the queue of requests that are answered later.

pub(crate) mod queue;
pub(crate) mod tasks;

//! Turns, documents, tasks and the queue.

mod answers;
mod documents;
mod queue;
mod tasks;
mod turns;

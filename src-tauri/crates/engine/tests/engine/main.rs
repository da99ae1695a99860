//! The real `tierbar-worker` with real models, as its one client, the host, sees it.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod answers;
mod bounds;
mod chat;
mod compiler;
mod contexts;
#[cfg(feature = "vulkan")]
mod device;
mod embeddings;
mod encoder;
mod experts;
mod fields;
mod forms;
mod media;
mod memory;
mod mrope;
mod oracle;
mod process;
mod rerank;
mod scores;
mod sound;
mod speculation;
mod support;
mod swap;
mod together;

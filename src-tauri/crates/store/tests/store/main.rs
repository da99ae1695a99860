//! The store through its public interface, on real files.

#![expect(clippy::unwrap_used, reason = "a test fails by its panic")]

mod agent_files;
mod agent_grants;
mod backup;
mod copies;
mod documents;
mod grades;
mod keys;
mod log;
mod queue;
mod sessions;
mod support;
mod tables;
mod turns;

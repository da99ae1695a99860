//! The library through its public interface, with real files and the real system.

#![expect(clippy::unwrap_used, reason = "a test fails by its panic")]

mod folders;
mod listing;
mod trash;
mod watch;

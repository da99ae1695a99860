//! The tools of MCP servers that the user adds: programs in the sandbox of an agent's commands, and addresses.
//!
//! All that a server says is data. Its descriptions, results and errors are bounded and never trusted; the agent marks them before a model
//! sees them. Hints such as `readOnlyHint` count for nothing. A server gets no answers but those of the protocol: nothing of the model, of
//! files or of the person.

mod http;
mod messages;
mod program;
mod session;
mod tools;

pub use program::Program;
pub use session::{Place, Session};
pub use tools::{Listing, Tool};

use tierbar_core::{Error, json::MCP_MESSAGE_MEMORY};

/// Why a server could not be used, as the end of a sentence that begins with its name.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Failure {
    #[error("cannot run here: {0}")]
    NotRun(String),
    /// This computer lacks something for it.
    #[error("cannot be used now: {}", .0.message)]
    Lack(Error),
    #[error("has ended{0}")]
    Ended(String),
    /// Its program, or one that it has started.
    #[error("has ended{0}")]
    NotFound(String),
    #[error("cannot be reached: {0}")]
    Unreachable(String),
    #[error("wants a key, or another one")]
    KeyWanted,
    #[error("has not answered within {0} s")]
    Silent(u64),
    /// As silent, and the last line or event that could not be read.
    #[error("has not answered within {seconds} s; it sent what is not a message: {line}")]
    Unread { seconds: u64, line: String },
    #[error(
        "has sent a message of more than {} MiB, or one that takes more than {} MiB of memory",
        messages::MESSAGE_BYTES >> 20, MCP_MESSAGE_MEMORY >> 20
    )]
    TooLong,
    #[error("lists more than {} tools", tools::MOST_LISTED)]
    TooMany,
    #[error("lists tools that take more than {} MiB of memory", tools::MOST_MEMORY >> 20)]
    TooMuch,
    #[error("has no tool {0} any more")]
    Gone(String),
    #[error("has changed its tool {0} since its use was allowed, so it was not used")]
    Changed(String),
    #[error("wants more from you in the middle of a step, which is not passed on")]
    WantsInput,
    #[error("does not speak the protocol as it should: {0}")]
    Protocol(String),
    /// The server's own words.
    #[error("reports an error: {0}")]
    Reported(String),
}

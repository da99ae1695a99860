//! The worker's side of the contract: its arguments are the supervisor's, its first line of stdout is this.
//!
//! `tierbar-worker --model PATH --socket PATH [--id ID] [--context N] [--slots N] [--kv-cache TYPE] [--threads N] [--batch N]
//! [--contexts DIR] [--chat-template PATH] [--gpu-layers N] [--mapped [--expert-cache-mib N]]
//! [--lookup] [--draft-model PATH] [--nice N] [--swapped DIR --swapped-mib N]`.
//! It prints `loading` lines while it loads and exactly one line of the others, ends when its stdin closes and on
//! SIGTERM, at any moment, and logs to stderr. At SIGTERM it writes the conversations that it holds to DIR first, if there is such
//! a folder, in two seconds at most.

use crate::Error;
use serde::{Deserialize, Serialize};

/// Version of the handshake; a worker of another version is refused.
pub const PROTOCOL: u32 = 1;

/// A line on the worker's stdout. Serving has begun when it says `ready`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Handshake {
    /// Percent of the weights that are loaded.
    Loading(u8),
    Ready(WorkerReady),
    /// The load failed; the worker exits with status 1 after it.
    Failed(Error),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerReady {
    pub protocol: u32,
    pub pid: u32,
    /// The allocated context, which may be less than requested: the model's limit caps it.
    pub context_tokens: u32,
    pub memory: Memory,
}

/// Bytes that the engine reports for its own buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Memory {
    /// Weights read through the file mapping.
    pub weights_mapped_bytes: u64,
    /// Weights in memory of the process: a copy, such as one in a layout that the CPU computes faster with.
    pub weights_bytes: u64,
    /// Weights in memory of the GPU's.
    #[serde(default)]
    pub weights_device_bytes: u64,
    pub kv_bytes: u64,
    pub compute_bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_handshake_is_one_line_of_json() {
        let ready = Handshake::Ready(WorkerReady {
            protocol: 1,
            pid: 7,
            context_tokens: 4096,
            memory: Memory::default(),
        });
        let line = serde_json::to_string(&ready).unwrap();
        assert!(
            line.starts_with(r#"{"ready":{"protocol":1,"pid":7,"#),
            "{line}"
        );
        assert_eq!(serde_json::from_str::<Handshake>(&line).unwrap(), ready);
    }
}

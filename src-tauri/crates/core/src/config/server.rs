//! How the API is served.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ServerConfig {
    /// Answer on 127.0.0.1:11434 too, where clients look for Ollama, unless that runs there itself.
    pub act_as_ollama: bool,
}

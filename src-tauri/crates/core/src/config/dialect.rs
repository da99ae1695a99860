//! What a server that is not ours speaks.

use serde::{Deserialize, Serialize};

/// Whose API an endpoint has. Clients are answered in the one that they ask in, whatever this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum Dialect {
    /// `/v1/chat/completions`.
    #[default]
    #[serde(rename = "openai")]
    OpenAi,
    /// `/v1/messages`.
    #[serde(rename = "anthropic")]
    Anthropic,
}

impl Dialect {
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
    pub(super) fn is_openai(&self) -> bool {
        *self == Self::OpenAi
    }
}

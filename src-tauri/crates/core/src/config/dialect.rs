//! The API that an endpoint has.

use serde::{Deserialize, Serialize};

/// The dialect of an endpoint. Clients are always answered in their own dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
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

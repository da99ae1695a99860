//! What a request's headers ask of the router.

use axum::http::HeaderMap;
use tierbar_core::TierId;

pub(super) const TIER: &str = "x-tierbar-tier";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Hints {
    /// The tier that is to answer, for a request that leaves the choice.
    pub(crate) tier: Option<String>,
}

impl Hints {
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let tier = headers.get(TIER).map(|value| {
            String::from_utf8_lossy(value.as_bytes())
                .trim()
                .to_ascii_lowercase()
        });
        Self {
            tier: tier.filter(|tier| !tier.is_empty() && tier != TierId::AUTO),
        }
    }
}

//! The headers of a request that choose its tier, or belong to its dialect.

use crate::http::headers::TIER;
use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, HeaderName, request::Parts},
};
use std::convert::Infallible;
use tierbar_core::TierId;

static CHAIN: HeaderName = HeaderName::from_static("x-tierbar-chain");
static MARK: HeaderName = HeaderName::from_static("x-tierbar-mark");
/// The version of Anthropic's API, and features that are not in either API yet.
pub(super) const ANTHROPIC_VERSION: HeaderName = HeaderName::from_static("anthropic-version");
pub(super) const ANTHROPIC_BETA: HeaderName = HeaderName::from_static("anthropic-beta");
pub(super) const OPENAI_BETA: HeaderName = HeaderName::from_static("openai-beta");
/// The headers that belong to a dialect. The client's credentials are none of them.
const DIALECT: [HeaderName; 3] = [ANTHROPIC_VERSION, ANTHROPIC_BETA, OPENAI_BETA];

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Hints {
    /// The tier that is to answer, for a request that leaves the choice.
    pub(crate) tier: Option<String>,
    /// The chain that is to answer, whatever model is named.
    pub(crate) chain: Option<String>,
    /// Whether an answer that is not the first choice's is to say so in its text.
    pub(crate) mark: Option<bool>,
    /// The versions and beta features of the client's dialect, for servers that speak it.
    pub(crate) dialect: HeaderMap,
}

impl Hints {
    fn of(headers: &HeaderMap) -> Self {
        let named = |name: &HeaderName| {
            let value = headers.get(name)?;
            let value = String::from_utf8_lossy(value.as_bytes());
            Some(value.trim().to_ascii_lowercase()).filter(|value| !value.is_empty())
        };
        Self {
            tier: named(&TIER).filter(|tier| tier != TierId::AUTO),
            chain: named(&CHAIN),
            mark: named(&MARK).map(|mark| !matches!(mark.as_str(), "off" | "false" | "0")),
            dialect: picked(headers, &DIALECT),
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Hints {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::of(&parts.headers))
    }
}

/// Returns the headers of these names.
pub(super) fn picked(headers: &HeaderMap, names: &[HeaderName]) -> HeaderMap {
    let mut picked = HeaderMap::new();
    for name in names {
        for value in headers.get_all(name) {
            picked.append(name.clone(), value.clone());
        }
    }
    picked
}

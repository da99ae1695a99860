//! The headers of a request that choose who answers it.

use crate::http::headers::TIER;
use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, HeaderName, request::Parts},
};
use std::convert::Infallible;
use tierbar_core::TierId;

static CHAIN: HeaderName = HeaderName::from_static("x-tierbar-chain");
static MARK: HeaderName = HeaderName::from_static("x-tierbar-mark");

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Hints {
    /// The tier that is to answer, for a request that leaves the choice.
    pub(crate) tier: Option<String>,
    /// The chain that is to answer, whatever model is named.
    pub(crate) chain: Option<String>,
    /// Whether an answer that is not the first choice's is to say so in its text.
    pub(crate) mark: Option<bool>,
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
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Hints {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::of(&parts.headers))
    }
}

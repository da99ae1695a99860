//! The headers of a request that choose its tier, or belong to its dialect.

use crate::headers::TIER;
use http::{HeaderMap, HeaderName};
use tierbar_core::TierId;

static CHAIN: HeaderName = HeaderName::from_static("x-tierbar-chain");
static MARK: HeaderName = HeaderName::from_static("x-tierbar-mark");
/// The version of Anthropic's API, and features that are not in either API yet.
pub(crate) const ANTHROPIC_VERSION: HeaderName = HeaderName::from_static("anthropic-version");
pub(crate) const ANTHROPIC_BETA: HeaderName = HeaderName::from_static("anthropic-beta");
pub(super) const OPENAI_BETA: HeaderName = HeaderName::from_static("openai-beta");
/// The headers that belong to a dialect. The client's credentials are none of them.
const DIALECT: [HeaderName; 3] = [ANTHROPIC_VERSION, ANTHROPIC_BETA, OPENAI_BETA];

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hints {
    /// The tier that is to answer, for a request that leaves the choice.
    pub tier: Option<String>,
    /// The chain that is to answer, whatever model is named.
    pub chain: Option<String>,
    /// Whether an answer that is not the first choice's is to say so in its text.
    pub mark: Option<bool>,
    /// The versions and beta features of the client's dialect, for servers that speak it.
    pub dialect: HeaderMap,
}

impl Hints {
    /// Reads them from the headers of a request.
    pub fn from_headers(headers: &HeaderMap) -> Self {
        let named = |name: &HeaderName| {
            let value = headers.get(name)?;
            let value = String::from_utf8_lossy(value.as_bytes());
            Some(value.trim().to_ascii_lowercase()).filter(|value| !value.is_empty())
        };
        Self {
            tier: named(&TIER).filter(|tier| tier != TierId::AUTO),
            chain: named(&CHAIN),
            mark: named(&MARK).map(|mark| !matches!(mark.as_str(), "off" | "false" | "0")),
            dialect: pick_headers(headers, &DIALECT),
        }
    }
}

/// Returns the headers of these names.
pub(crate) fn pick_headers(headers: &HeaderMap, names: &[HeaderName]) -> HeaderMap {
    let mut picked = HeaderMap::new();
    for name in names {
        for value in headers.get_all(name) {
            picked.append(name.clone(), value.clone());
        }
    }
    picked
}

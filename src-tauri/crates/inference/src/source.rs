//! Where an answer comes from.

use crate::headers::TIER;
use http::{HeaderMap, HeaderName, HeaderValue};
use std::time::Instant;
use tierbar_chats::context::ContextUse;
use tierbar_core::{Code, ModelId, TierId};

const MODEL: &str = "x-tierbar-model";

/// Who answers, and in whose place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Source {
    pub tier: Option<TierId>,
    pub model: Option<ModelId>,
    /// Why the router chose the tier, if it did, in one sentence.
    pub why: Option<String>,
    /// The tier that the request names, while memory is too short for it.
    pub stepped_down_from: Option<TierId>,
    pub chain: Option<TierId>,
    /// The chain's steps that did not answer, each with its error, or with none if it was passed over.
    pub tried: Vec<(TierId, Option<Code>)>,
    /// The chain's first step, if another answers.
    pub fallback_from: Option<TierId>,
    /// How full the context was, of an answer that is complete.
    pub context: Option<ContextUse>,
    /// What came of the chain's triage, if it has one.
    pub triage: Option<String>,
    /// When the wait for the tier was over, of an answer that streams.
    pub leased: Option<Instant>,
}

impl Source {
    /// The same as headers of a response. A value that no header can have is left out.
    pub fn headers(&self) -> HeaderMap {
        let tried = self.tried.iter().map(|(tier, code)| {
            let word = code.map_or("passed over", Code::as_str);
            format!("{tier}={word}")
        });
        let tried: Vec<_> = tried.collect();
        let tier = |tier: &Option<TierId>| tier.as_ref().map(ToString::to_string);
        let context = self
            .context
            .map(|used| format!("{}/{}", used.prompt_tokens, used.context_tokens));
        let all = [
            (TIER.as_str(), tier(&self.tier)),
            (MODEL, self.model.as_ref().map(ToString::to_string)),
            ("x-tierbar-why", self.why.clone()),
            ("x-tierbar-stepped-down-from", tier(&self.stepped_down_from)),
            ("x-tierbar-chain", tier(&self.chain)),
            (
                "x-tierbar-tried",
                (!tried.is_empty()).then(|| tried.join(", ")),
            ),
            ("x-tierbar-fallback-from", tier(&self.fallback_from)),
            ("x-tierbar-context", context),
            ("x-tierbar-triage", self.triage.clone()),
        ];
        let valid = all.into_iter().filter_map(|(name, value)| {
            // A model is named after its file, which may be named as no ASCII text is.
            let value = HeaderValue::from_bytes(value?.as_bytes()).ok()?;
            Some((HeaderName::from_static(name), value))
        });
        valid.collect()
    }

    /// The tier and the model that a response's headers name.
    pub(crate) fn of_headers(headers: &HeaderMap) -> Self {
        let text = |name: &str| {
            let value = headers.get(name)?;
            Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        Self {
            tier: text(TIER.as_str()).and_then(|tier| TierId::new(tier).ok()),
            model: text(MODEL).map(ModelId),
            ..Self::default()
        }
    }
}

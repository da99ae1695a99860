//! Models' names, as Ollama's clients write them.

pub(super) use tierbar_inference::route::without_latest_tag;

use serde::Deserialize;
use tierbar_core::{Code, Error, ModelKind, TierId, status::TierStatus};
use tierbar_inference::route;
use utoipa::ToSchema;

/// # Errors
/// Those of [`route::resolve`].
pub(super) fn tier(name: &str, tiers: &[TierStatus]) -> Result<TierId, Error> {
    route::resolve(Some(name), tiers)
}

/// As [`tier`], of a request for embeddings.
///
/// # Errors
/// Those of [`route::resolve_for`].
pub(super) fn embedder(name: &str, tiers: &[TierStatus]) -> Result<TierId, Error> {
    route::resolve_for(
        ModelKind::Embedding,
        Some(without_latest_tag(name, tiers)),
        tiers,
    )
}

/// A request about a model.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default)]
#[schema(as = OllamaNamed)]
pub(super) struct OllamaModelName {
    model: Option<String>,
    /// The older name of `model`.
    name: Option<String>,
    /// For a download: whether to answer with its progress as lines of JSON, which is the default.
    stream: Option<bool>,
}

impl OllamaModelName {
    /// # Errors
    /// `BadRequest` if it names none.
    pub(super) fn model(&self) -> Result<&str, Error> {
        let mut named = [&self.model, &self.name].into_iter().flatten();
        named
            .find_map(|name| Some(name.trim()).filter(|name| !name.is_empty()))
            .ok_or_else(|| Error::new(Code::BadRequest, "`model` is missing: name one"))
    }

    pub(super) fn streams(&self) -> bool {
        self.stream.unwrap_or(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::tier as status;
    use tierbar_core::TierState;

    #[test]
    fn a_tag_that_says_nothing_is_no_part_of_a_name() {
        let tiers = [
            status("fast", Some("small"), TierState::Ready),
            status("far", Some("llama3:latest"), TierState::Ready),
        ];
        for (name, means) in [
            ("fast:latest", "fast"),
            ("fast", "fast"),
            ("small:latest", "fast"),
            ("llama3:latest", "far"),
        ] {
            assert_eq!(tier(name, &tiers).unwrap().as_str(), means, "{name}");
        }
        assert_eq!(without_latest_tag("qwen:7b", &tiers), "qwen:7b");
        assert!(tier("llama3", &tiers).is_err());
    }

    #[test]
    fn a_model_is_named_by_either_field() {
        let named = |body: &str| {
            let named: OllamaModelName = tierbar_inference::body::parse(body.as_bytes()).unwrap();
            named.model().map(str::to_owned).ok()
        };
        for body in [
            r#"{"model":"a"}"#,
            r#"{"name":"a"}"#,
            r#"{"model":"a","name":""}"#,
            r#"{"model":" ","name":"a"}"#,
        ] {
            assert_eq!(named(body).as_deref(), Some("a"), "{body}");
        }
        assert_eq!(named(r#"{"model":null}"#), None);
    }
}

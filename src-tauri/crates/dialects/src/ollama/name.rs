//! Models' names, as Ollama's clients write them.

use serde::Deserialize;
use tierbar_core::{Error, bad_request};
use utoipa::ToSchema;

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
    pub(super) fn model(&self) -> Result<&str, Error> {
        let mut named = [&self.model, &self.name].into_iter().flatten();
        named
            .find_map(|name| Some(name.trim()).filter(|name| !name.is_empty()))
            .ok_or_else(|| bad_request("`model` is missing: name one"))
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
    use tierbar_inference::route::{resolve, without_latest_tag};

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
            assert_eq!(
                resolve(Some(name), &tiers).unwrap().as_str(),
                means,
                "{name}"
            );
        }
        assert_eq!(without_latest_tag("qwen:7b", &tiers), "qwen:7b");
        assert!(resolve(Some("llama3"), &tiers).is_err());
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

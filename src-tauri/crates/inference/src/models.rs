//! The models that a request can name.

use crate::Inference;
use std::collections::{BTreeMap, BTreeSet};
use tierbar_core::{
    Code, Error, ModelId, TierId, config::ChainConfig, nearest::nearest, status::TierStatus,
};

/// Why a name means no tier, where more can be said: it may be that of a model which is here and which no tier has, or nearly that of a
/// chain.
pub async fn explain_unknown_name(
    inference: &Inference,
    wanted: Option<&str>,
    error: Error,
) -> Error {
    let Some(name) = wanted.filter(|_| error.code == Code::ModelUnknown) else {
        return error;
    };
    let installed = installed(inference).await;
    let config = inference.services.config();
    explain_unassigned(name, &installed, near_chain(name, &config.chains, error))
}

fn near_chain(name: &str, chains: &BTreeMap<TierId, ChainConfig>, error: Error) -> Error {
    let near = nearest(name, chains.keys().map(TierId::as_str));
    match (near, error.hint.clone()) {
        (Some(near), Some(hint)) if !hint.starts_with("did you mean ") => {
            error.hint(format!("did you mean {near}? {hint}"))
        }
        _ => error,
    }
}

fn explain_unassigned(name: &str, installed: &BTreeSet<ModelId>, error: Error) -> Error {
    let id = ModelId(name.strip_suffix(".gguf").unwrap_or(name).to_owned());
    if !installed.contains(&id) {
        return error;
    }
    let hint =
        format!("choose it for a tier in Settings > Models, or run `tierbar tier use TIER {id}`");
    Error {
        message: format!("{id} is installed, but no tier uses it"),
        hint: Some(hint),
        ..error
    }
}

/// The models that are here and can be loaded; none if the folder cannot be read.
async fn installed(inference: &Inference) -> BTreeSet<ModelId> {
    let listed = inference.models.list().await;
    let models = listed.map(|listed| listed.models).unwrap_or_default();
    let loadable = models.into_iter().filter(|model| model.error.is_none());
    loadable.map(|model| model.id).collect()
}

/// The models that can be asked for by their own names, which are those that tiers have: a name is a tier's or a chain's
/// before it is a model's.
pub fn models_by_name(
    tiers: &[TierStatus],
    chains: &BTreeMap<TierId, ChainConfig>,
) -> BTreeSet<ModelId> {
    let models = tiers.iter().filter_map(|tier| tier.model.clone());
    let mut models: BTreeSet<_> = models.collect();
    let names = tiers.iter().map(|tier| &tier.id).chain(chains.keys());
    models.retain(|model| !names.clone().any(|name| name.as_str() == model.as_str()));
    models
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{route, testing::tier};
    use serde_json::json;
    use tierbar_core::TierState;

    #[test]
    fn a_model_without_a_tier_is_refused_with_a_hint() {
        let tiers = [tier("fast", Some("small"), TierState::Stopped)];
        let here = BTreeSet::from([ModelId("new".to_owned())]);
        let refused =
            |name: &str| explain_unassigned(name, &here, route::unknown_name_error(name, &tiers));
        for name in ["new", "new.gguf"] {
            let error = refused(name);
            assert_eq!(error.message, "new is installed, but no tier uses it");
            assert_eq!(error.code, Code::ModelUnknown);
            assert_eq!(error.details["available"], json!(["auto", "fast", "small"]));
        }
        assert_eq!(refused("gpt-5"), route::unknown_name_error("gpt-5", &tiers));
    }

    #[test]
    fn a_mistyped_chain_is_named() {
        let tiers = [tier("fast", Some("small"), TierState::Stopped)];
        let night = TierId::new("nightly").unwrap();
        let chains = BTreeMap::from([(night, ChainConfig::default())]);
        let refused =
            |name: &str| near_chain(name, &chains, route::unknown_name_error(name, &tiers));
        let hint = refused("nihgtly").hint.unwrap();
        assert!(
            hint.starts_with("did you mean nightly? use one of"),
            "{hint}"
        );
        for other in ["fsat", "gpt-5"] {
            assert_eq!(
                refused(other),
                route::unknown_name_error(other, &tiers),
                "{other}"
            );
        }
    }
}

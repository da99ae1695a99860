//! `tierbar tier use`: chooses a tier's model.

use super::list;
use crate::{client::Client, output};
use serde_json::json;
use tierbar_core::{
    Code, Error, ModelKind, TierId, bad_request,
    fit::LibraryModel,
    nearest::suggest,
    setup::settings_for,
    status::{EngineKind, TierStatus},
};

/// Tiers that can be given a model before the configuration has them.
const STANDARD: [&str; 5] = [
    "fast",
    "primary",
    "heavy",
    TierId::EMBEDDER,
    TierId::RERANKER,
];

/// Gives a tier the model of this name.
///
/// # Errors
/// As [`choose`]; `ModelMissing` if there is no such model.
pub(crate) async fn choose_named(
    client: &Client,
    tier: &str,
    model: &str,
    as_json: bool,
) -> Result<(), Error> {
    let tiers = client.tiers().await?;
    if let Err(unknown) = find(tier, &tiers) {
        // The names are easily swapped.
        let is_swapped = find(model, &tiers).is_ok();
        return Err(match is_swapped {
            true => unknown.hint(format!(
                "the tier comes first: `tierbar tier use {model} {tier}`"
            )),
            false => unknown,
        });
    }
    let model = list::find_model(client, model).await?;
    choose(client, tier, &model, as_json).await
}

/// Gives a tier a model, with the settings of the model's verdict.
///
/// # Errors
/// `TierUnknown` with the nearest name, `BadRequest` for a tier that takes no model; those of the host.
pub(super) async fn choose(
    client: &Client,
    tier: &str,
    model: &LibraryModel,
    as_json: bool,
) -> Result<(), Error> {
    let tier = find(tier, &client.tiers().await?)?;
    let patch = json!({"tiers": {tier.as_str(): settings_for(model.id.as_str())}});
    client.patch("/tierbar/v1/config", &patch).await?;
    if as_json {
        output::write_json(&json!({"tier": tier, "model": model.id}));
        return Ok(());
    }
    output::write_line(&format!("{tier} uses {}.", model.id));
    if let (true, Some(fit)) = (kind(model) != ModelKind::Chat, &model.fit) {
        output::write_line(&format!("  {}", fit.summary));
        if let Some(warning) = &fit.warning {
            output::write_line(&format!("  {warning}"));
        }
    }
    Ok(())
}

/// Returns a tier that the configuration has, or that it gets with its model.
fn find(name: &str, tiers: &[TierStatus]) -> Result<TierId, Error> {
    if let Some(tier) = tiers.iter().find(|tier| tier.id.as_str() == name) {
        if tier.engine == EngineKind::Embedded {
            return Ok(tier.id.clone());
        }
        let message = format!("{name} is served by an endpoint and needs no model file");
        return Err(bad_request(message).hint("name another tier"));
    }
    let unknown = |hint: String| {
        Error::new(Code::TierUnknown, format!("there is no tier \"{name}\"")).hint(hint)
    };
    if STANDARD.contains(&name) {
        return TierId::new(name).map_err(unknown);
    }
    let own = tiers
        .iter()
        .filter(|tier| tier.engine == EngineKind::Embedded);
    let own = own.map(|tier| tier.id.as_str());
    let mut names: Vec<_> = own.chain(STANDARD).collect();
    names.sort_unstable();
    names.dedup();
    let all = format!(
        "use one of {}; another tier is added in Settings > Tiers or config.toml",
        names.join(", ")
    );
    Err(unknown(suggest(name, names, all)))
}

pub(super) fn kind(model: &LibraryModel) -> ModelKind {
    let account = model.account.as_ref();
    account.map(|account| account.kind).unwrap_or_default()
}

/// Returns the tier of models that are not for chats.
pub(super) fn tier_of_kind(kind: ModelKind) -> Option<&'static str> {
    match kind {
        ModelKind::Chat => None,
        ModelKind::Embedding => Some(TierId::EMBEDDER),
        ModelKind::Reranking => Some(TierId::RERANKER),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::tier_status;

    fn tier(id: &str, engine: &str) -> TierStatus {
        tier_status(&json!({"id": id, "engine": engine}))
    }

    #[test]
    fn a_mistyped_tier_is_not_added() {
        let tiers = [
            tier("coder", "embedded"),
            tier("fast", "embedded"),
            tier("far", "endpoint"),
        ];
        for known in ["fast", "coder", "heavy", "embedder"] {
            assert_eq!(find(known, &tiers).unwrap().as_str(), known);
        }
        let error = find("codr", &tiers).unwrap_err();
        assert_eq!(error.code, Code::TierUnknown);
        let hint = error.hint.unwrap();
        assert!(
            hint.starts_with("did you mean coder? use one of coder, embedder, fast, heavy, "),
            "{hint}"
        );
        assert_eq!(find("far", &tiers).unwrap_err().code, Code::BadRequest);
        let error = find("No Tier", &tiers).unwrap_err();
        assert_eq!(error.message, "there is no tier \"No Tier\"");
    }
}

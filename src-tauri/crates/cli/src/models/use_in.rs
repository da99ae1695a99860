//! `tierbar models use`: chooses a tier's model.

use super::list;
use crate::{
    client::{Client, admin},
    output,
};
use serde_json::json;
use tierbar_core::{Code, Error, ModelKind, TierId, fit::LibraryModel, setup::settings_for};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Model ID
    #[arg(value_name = "MODEL")]
    model: String,
    /// Tier [default: embedder for an embedding model, reranker for a reranking model]
    tier: Option<String>,
}

pub(super) async fn run(client: &Client, args: &Args) -> Result<(), Error> {
    let wanted = super::absolute_if_path(&args.model);
    let models = list::all(client).await?.models;
    let is_wanted = |model: &&LibraryModel| {
        let id = wanted.strip_suffix(".gguf").unwrap_or(&wanted);
        model.id.as_str() == id || model.path == wanted
    };
    let model = models.iter().find(is_wanted).ok_or_else(|| {
        let message = format!("there is no model \"{wanted}\"");
        Error::new(Code::ModelMissing, message)
            .hint("run `tierbar models` for the list, or `tierbar models pull`")
    })?;
    let kind = model.account.as_ref().map(|account| account.kind);
    let tier = match &args.tier {
        Some(tier) => tier.as_str(),
        None => of_kind(kind.unwrap_or_default()).ok_or_else(|| {
            let message = format!(
                "{} is a chat model: name the tier that is to use it",
                model.id
            );
            let hint = format!("such as `tierbar models use {} primary`", model.id);
            Error::new(Code::BadRequest, message).hint(hint)
        })?,
    };
    let tier = TierId::new(tier).map_err(|reason| Error::new(Code::TierUnknown, reason))?;
    let patch = json!({"tiers": {tier.as_str(): settings_for(model.id.as_str())}});
    client.patch(&admin(&["config"], &[]), &patch).await?;
    output::line(&format!("{tier} uses {}.", model.id));
    let kind_of_tier = kind.filter(|kind| *kind != ModelKind::Chat);
    if let (Some(_), Some(fit)) = (kind_of_tier, &model.fit) {
        output::line(&format!("  {}", fit.summary));
        if let Some(warning) = &fit.warning {
            output::line(&format!("  {warning}"));
        }
    }
    Ok(())
}

fn of_kind(kind: ModelKind) -> Option<&'static str> {
    match kind {
        ModelKind::Chat => None,
        ModelKind::Embedding => Some(TierId::EMBEDDER),
        ModelKind::Reranking => Some(TierId::RERANKER),
    }
}

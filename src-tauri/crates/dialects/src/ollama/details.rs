//! Facts about a model, from its header if its file is here.

use data_encoding::HEXLOWER;
use jiff::Timestamp;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::{collections::BTreeMap, fs};
use tierbar_core::{Modality, ModelId, ModelKind, TierId, fit::LibraryModel, status::TierStatus};
use tierbar_fetch::blocking;
use tierbar_inference::Inference;

/// The models that are here.
#[derive(Debug, Default)]
pub(super) struct Library(Vec<LibraryModel>);

impl Library {
    /// Empty if the folder cannot be read, since tiers are listed all the same.
    pub(super) async fn read(inference: &Inference) -> Self {
        let listed = inference.models.list().await;
        Self(listed.map(|listed| listed.models).unwrap_or_default())
    }

    pub(super) fn of_tier(&self, tier: &TierStatus) -> Option<&LibraryModel> {
        self.0.iter().find(|model| model.tiers.contains(&tier.id))
    }

    /// The file that is meant by a model's name: in one of the tiers, if one has it.
    pub(super) fn of_model(&self, id: &ModelId, tiers: &[TierStatus]) -> Option<&LibraryModel> {
        let mut with_model = tiers.iter().filter(|tier| tier.model.as_ref() == Some(id));
        match with_model.clone().next() {
            Some(_) => with_model.find_map(|tier| self.of_tier(tier)),
            None => self.0.iter().find(|model| model.id == *id),
        }
    }

    /// Whether it is here under this name, or was fetched by it.
    pub(super) fn has(&self, name: &str) -> bool {
        let is = |model: &LibraryModel| {
            model.id.as_str() == name || model.reference.as_deref() == Some(name)
        };
        let mut models = self.0.iter();
        models.any(|model| model.error.is_none() && is(model))
    }
}

pub(super) fn details(model: Option<&LibraryModel>) -> Value {
    let account = model.and_then(|model| model.account.as_ref());
    let family = account.map_or("", |account| &account.architecture);
    let families: Vec<_> = account
        .iter()
        .map(|account| &account.architecture)
        .collect();
    json!({
        "parent_model": "",
        "format": model.map_or("", |_| "gguf"),
        "family": family,
        "families": families,
        "parameter_size": account.map_or_else(String::new, |account| format_parameters(account.parameters)),
        "quantization_level": account.map_or("", |account| &account.quant),
    })
}

/// Of a model that is elsewhere nothing is known but that it answers.
pub(super) fn capabilities(model: Option<&LibraryModel>) -> Vec<&'static str> {
    let Some((model, account)) = model.and_then(|model| Some((model, model.account.as_ref()?)))
    else {
        return vec!["completion"];
    };
    match account.kind {
        ModelKind::Chat => {}
        ModelKind::Embedding => return vec!["embedding"],
        // Ollama has no word for it.
        ModelKind::Reranking => return Vec::new(),
    }
    let takes = |modality| model.input_modalities.contains(&modality);
    let rendered = [
        ("completion", true),
        ("tools", account.tools),
        ("vision", takes(Modality::Image)),
        ("audio", takes(Modality::Audio)),
        ("thinking", account.thinking),
    ];
    let has = rendered.into_iter().filter(|(_, has)| *has);
    has.map(|(name, _)| name).collect()
}

/// The file's sha256 if it has been hashed; else a hash of what distinguishes the file, since clients show a part of it.
pub(super) fn digest(name: &str, model: Option<&LibraryModel>) -> String {
    if let Some(known) = model.and_then(|model| model.sha256.as_deref()) {
        return known.to_owned();
    }
    let rendered = match model {
        Some(model) => format!("{} {}", model.path, model.size_bytes),
        None => name.to_owned(),
    };
    HEXLOWER.encode(&Sha256::digest(rendered))
}

/// When each file was changed; 1970 for what has no such moment.
pub(super) async fn modification_times(models: &[Option<&LibraryModel>]) -> Vec<Timestamp> {
    let count = models.len();
    let path = |model: &Option<&LibraryModel>| model.map(|model| model.path.clone());
    let paths: Vec<_> = models.iter().map(path).collect();
    let looked = blocking("reading the model files", move || {
        let changed = |path: Option<String>| {
            let changed = path.and_then(|path| fs::metadata(path).ok()?.modified().ok());
            let changed = changed.and_then(|changed| Timestamp::try_from(changed).ok());
            changed.unwrap_or(Timestamp::UNIX_EPOCH)
        };
        Ok(paths.into_iter().map(changed).collect())
    });
    let unknown = |_| vec![Timestamp::UNIX_EPOCH; count];
    looked.await.unwrap_or_else(unknown)
}

/// When the files of the tiers' models were changed, in seconds since 1970.
pub(crate) async fn tier_times(
    inference: &Inference,
    tiers: &[TierStatus],
) -> BTreeMap<TierId, i64> {
    let library = Library::read(inference).await;
    let models: Vec<_> = tiers.iter().map(|tier| library.of_tier(tier)).collect();
    let changed = modification_times(&models).await.into_iter();
    let ids = tiers.iter().map(|tier| tier.id.clone());
    let of_tiers = ids.zip(changed.map(Timestamp::as_second));
    of_tiers.filter(|(_, changed)| *changed > 0).collect()
}

/// As Ollama writes it: `134.52M`, `8.0B`.
fn format_parameters(parameters: u64) -> String {
    #[allow(clippy::cast_precision_loss)]
    let number = parameters as f64;
    match parameters {
        1_000_000_000.. => format!("{:.1}B", number / 1e9),
        1_000_000.. => format!("{:.2}M", number / 1e6),
        1000.. => format!("{:.0}K", number / 1e3),
        _ => parameters.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_written_as_people_say_them() {
        for (parameters, text) in [
            (0, "0"),
            (999, "999"),
            (22_000, "22K"),
            (134_515_008, "134.52M"),
            (8_030_261_248, "8.0B"),
        ] {
            assert_eq!(format_parameters(parameters), text);
        }
    }

    #[test]
    fn a_digest_is_there_for_whatever_is_listed() {
        let (one, other) = (digest("auto", None), digest("far", None));
        assert_eq!((one.len(), other.len()), (64, 64));
        assert_ne!(one, other);
        assert!(one.bytes().all(|byte| byte.is_ascii_hexdigit()));
    }
}

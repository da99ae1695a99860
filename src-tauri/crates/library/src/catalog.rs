//! The built-in list of models, with their quants, repositories and architectures.
//!
//! Sizes and hashes in `catalog.json` are from public sources. The larger files were not downloaded to verify them, so unknown
//! values are `null`, and a download uses the hub's own metadata: a size is compared only if the hash is known, too. Their
//! headers were not read either: accounts are derived from published facts about the architecture and from the file size,
//! and their verdicts are marked as estimated.

use crate::{model_id, reference::Known};
use serde::Deserialize;
use std::sync::LazyLock;
use tierbar_core::{
    ModelAccount, ModelId,
    catalog::{CatalogModel, ModelKind, OfferedFile},
    config::KvCache,
    fit::{Machine, Offer, recommend, verdict},
    model::KvAccount,
};

/// The supported version of the file format.
pub const VERSION: u32 = 1;

/// In a mixture of few bits, the weights besides the experts keep at least as many sixteenths of a byte each (five and a
/// half bits, as Q5_K has): every token uses them, so quantizers spare them. An estimate, until a header is read.
const SIXTEENTHS_BESIDES_EXPERTS: u64 = 11;

/// `catalog.json`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Catalog {
    pub version: u32,
    pub models: Vec<Entry>,
}

/// A model. For the shared fields, see [`CatalogModel`].
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    pub id: String,
    pub name: String,
    pub about: String,
    /// Other names for it, such as Ollama's.
    pub aliases: Vec<String>,
    pub tier: Option<String>,
    pub default: bool,
    pub kind: ModelKind,
    pub repository: String,
    /// The commit of the sizes and hashes, if known.
    pub revision: Option<String>,
    pub licence: String,
    pub context_tokens: u32,
    pub kv_cache: KvCache,
    /// `None` for models that the engine does not run.
    pub architecture: Option<Architecture>,
    /// Sorted by size; for an embedding model, the first is recommended.
    pub quants: Vec<Quant>,
}

/// One file of a repository. None of the catalog's is split.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quant {
    pub quant: String,
    pub file: String,
    pub size_bytes: Option<u64>,
    pub sha256: Option<String>,
}

/// The facts of a header that are the same in every quant. See [`ModelAccount`].
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Architecture {
    pub name: String,
    /// Of the text model, rounded where only a rounded figure is published.
    pub parameters: u64,
    /// Of them, those of the routed experts, and those of embeddings per layer.
    pub expert_parameters: u64,
    pub per_layer_embedding_parameters: u64,
    pub tied_output: bool,
    pub layers: u32,
    pub heads: u32,
    pub kv_heads: u32,
    pub experts: u32,
    pub experts_used: u32,
    pub embedding: u32,
    pub vocabulary: u32,
    pub context_train: u32,
    pub kv: KvAccount,
    pub thinking: bool,
    pub tools: bool,
}

static CATALOG: LazyLock<Catalog> = LazyLock::new(|| {
    // A test parses the same text, so the fallback is never used in a tested build.
    serde_json::from_str(include_str!("catalog.json")).unwrap_or_else(|error| {
        tracing::error!("the catalog cannot be read: {error}");
        Catalog {
            version: VERSION,
            models: Vec::new(),
        }
    })
});

/// Returns the built-in catalog.
#[must_use]
pub fn catalog() -> &'static Catalog {
    &CATALOG
}

impl Catalog {
    /// By its id or an alias, in any case.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Entry> {
        self.models.iter().find(|entry| entry.is_called(name))
    }

    /// Returns the names of the model whose file this is: its id and its aliases; none for a file of no model here.
    #[must_use]
    pub fn names_of(&self, file: &ModelId) -> Vec<String> {
        let is_of = |quant: &Quant| model_id(&quant.file) == *file;
        let mut models = self.models.iter();
        let entry = models.find(|entry| entry.quants.iter().any(is_of));
        let names = entry.into_iter();
        names
            .flat_map(|entry| std::iter::once(&entry.id).chain(&entry.aliases))
            .cloned()
            .collect()
    }

    /// Looks up a name for [`crate::reference::Reference::parse`].
    #[must_use]
    pub fn known(&self, name: &str) -> Option<Known> {
        self.find(name).map(|entry| Known {
            id: entry.id.clone(),
            quant: None,
        })
    }

    /// Returns all models for the API, with verdicts for `machine`. None is marked as installed.
    #[must_use]
    pub fn wire(&self, machine: &Machine) -> Vec<CatalogModel> {
        let models = self.models.iter();
        models.map(|entry| entry.wire(machine)).collect()
    }
}

impl Entry {
    fn is_called(&self, name: &str) -> bool {
        let names = std::iter::once(&self.id).chain(&self.aliases);
        names.into_iter().any(|own| own.eq_ignore_ascii_case(name))
    }

    /// Returns the quant with this name, ignoring case.
    #[must_use]
    pub fn quant(&self, name: &str) -> Option<&Quant> {
        let mut quants = self.quants.iter();
        quants.find(|quant| quant.quant.eq_ignore_ascii_case(name))
    }

    /// Returns the reference on the hub.
    #[must_use]
    pub fn reference(&self, quant: &Quant) -> String {
        format!("{}:{}", self.repository, quant.quant)
    }

    /// The quant to take on this machine: of chat models the one that [`recommend`] chooses, if any runs; of others the
    /// first.
    #[must_use]
    pub fn recommended(&self, machine: &Machine) -> Option<&Quant> {
        if self.architecture.is_none() {
            return self.quants.first();
        }
        let account = self.quants.iter().find_map(|quant| self.account(quant))?;
        let offers = self.offers();
        let (context, kv) = (self.context_tokens, self.kv_cache);
        self.quant(&recommend(&account, context, kv, machine, &offers)?.quant)
    }

    /// An estimated account; `None` where the architecture or the size is not known.
    #[must_use]
    pub fn account(&self, quant: &Quant) -> Option<ModelAccount> {
        let facts = self.architecture.as_ref()?;
        Some(facts.account(&self.name, &quant.quant, quant.size_bytes?))
    }

    fn offers(&self) -> Vec<Offer> {
        let of_known_size = self.quants.iter().filter_map(|quant| {
            Some(Offer {
                quant: quant.quant.clone(),
                reference: self.reference(quant),
                size_bytes: quant.size_bytes?,
            })
        });
        of_known_size.collect()
    }

    fn wire(&self, machine: &Machine) -> CatalogModel {
        let recommended = self.recommended(machine);
        let offers = self.offers();
        let offered = |quant: &Quant| {
            let fit = self.account(quant).map(|account| {
                let (context, kv) = (self.context_tokens, self.kv_cache);
                let mut fit = verdict(&account, context, kv, machine, &offers);
                fit.estimated = true;
                fit
            });
            OfferedFile {
                quant: quant.quant.clone(),
                reference: self.reference(quant),
                file: quant.file.clone(),
                parts: 1,
                size_bytes: quant.size_bytes,
                sha256: quant.sha256.clone(),
                recommended: recommended == Some(quant),
                installed: false,
                fit,
            }
        };
        CatalogModel {
            id: self.id.clone(),
            name: self.name.clone(),
            about: self.about.clone(),
            tier: self.tier.clone(),
            default: self.default,
            kind: self.kind,
            repository: self.repository.clone(),
            licence: self.licence.clone(),
            context_tokens: self.context_tokens,
            kv_cache: self.kv_cache,
            quants: self.quants.iter().map(offered).collect(),
        }
    }
}

impl Architecture {
    /// Experts have what the file's other weights leave, and those have the file's mean bits per weight, or in a mixture
    /// the spared ones' if these are more.
    fn account(&self, name: &str, quant: &str, file_bytes: u64) -> ModelAccount {
        let per_layer = self.per_layer_embedding_parameters;
        let input = u64::from(self.embedding) * u64::from(self.vocabulary);
        let dense = self
            .parameters
            .saturating_sub(self.expert_parameters)
            .saturating_sub(per_layer)
            .saturating_sub(input);
        let bytes = |count: u64| {
            let mean =
                u128::from(file_bytes) * u128::from(count) / u128::from(self.parameters.max(1));
            let mean = u64::try_from(mean).unwrap_or(u64::MAX);
            if self.expert_parameters > 0 {
                mean.max(count / 16 * SIXTEENTHS_BESIDES_EXPERTS)
            } else {
                mean
            }
        };
        let embedding_bytes = bytes(input);
        let per_layer_embedding_bytes = bytes(per_layer);
        let rest = file_bytes
            .saturating_sub(embedding_bytes)
            .saturating_sub(per_layer_embedding_bytes);
        let (dense_bytes, expert_bytes) = if self.expert_parameters > 0 {
            let dense_bytes = bytes(dense).min(rest);
            (dense_bytes, rest - dense_bytes)
        } else {
            (rest, 0)
        };
        ModelAccount {
            architecture: self.name.clone(),
            kind: ModelKind::Chat,
            name: Some(name.to_owned()),
            quant: quant.to_owned(),
            file_bytes,
            parts: 1,
            dense_bytes,
            embedding_bytes,
            per_layer_embedding_bytes,
            expert_bytes,
            // Not published.
            feed_forward_bytes: 0,
            largest_layer_bytes: 0,
            parameters: self.parameters,
            tied_output: self.tied_output,
            layers: self.layers,
            heads: self.heads,
            kv_heads: self.kv_heads,
            experts: self.experts,
            experts_used: self.experts_used,
            embedding: self.embedding,
            vocabulary: self.vocabulary,
            context_train: self.context_train,
            kv: self.kv.clone(),
            chat_template: true,
            thinking: self.thinking,
            tools: self.tools,
        }
    }
}

#[cfg(test)]
mod tests;

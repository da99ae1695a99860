//! The built-in list of models, with their quants, repositories and architectures, and what others published about them.
//!
//! `catalog.json` is from public sources (`docs/catalog.md`), not from the files: unknown sizes and hashes are `null`, accounts
//! are derived from published facts about the architecture and from the file size, and their verdicts are marked as estimated.
//! What the hub says of the files since then is in [`HubFigures`].

mod figures;

pub use figures::{HubFigures, KnownFile};

use crate::model_id;
use serde::Deserialize;
use std::sync::LazyLock;
use tierbar_core::{
    Code, Error, Modality, ModelAccount, ModelId,
    budget::{CompanionModels, MediaProjector},
    catalog::{
        Capabilities, CatalogModel, ModelKind, OfferedFile, OfferedProjector, PublishedScore,
        PublishedSpeed,
    },
    config::Profile,
    fit::{ContextChoice, Instead, Machine, Offer, QuantLoss, recommend, verdict_with},
    model::KvAccount,
    sampling::Sampling,
};
use tierbar_gguf::Encoder;

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
    /// When the facts were collected: `2026-11-26`.
    pub date: String,
    pub models: Vec<Entry>,
}

/// A model. For the shared fields, see [`CatalogModel`].
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    pub id: String,
    pub name: String,
    pub about: String,
    pub inputs: Vec<Modality>,
    pub speeds: Vec<PublishedSpeed>,
    pub scores: Vec<PublishedScore>,
    /// Other names for it, such as Ollama's.
    pub aliases: Vec<String>,
    pub tier: Option<String>,
    pub default: bool,
    pub kind: ModelKind,
    pub maker: String,
    pub languages: Option<String>,
    pub repository: String,
    /// The commit of the sizes and hashes, if known.
    pub revision: Option<String>,
    pub licence: String,
    /// `None` for models that the engine does not run.
    pub architecture: Option<Architecture>,
    /// Sorted by size; for an embedding model, the first is recommended.
    pub quants: Vec<Quant>,
    /// The media projector, where the catalog's sources describe one.
    pub projector: Option<Projector>,
}

/// The media projector of a repository's models, as [`Quant`].
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Projector {
    pub file: String,
    pub size_bytes: u64,
    pub sha256: String,
    pub input_modalities: Vec<Modality>,
    /// What encodes images, and sound.
    pub vision: Option<Encoder>,
    pub audio: Option<Encoder>,
}

/// One file of a repository. None of the catalog's is split.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quant {
    pub quant: String,
    pub file: String,
    pub size_bytes: Option<u64>,
    pub sha256: Option<String>,
    /// The commit of this file, if it is not the entry's.
    #[serde(skip)]
    pub revision: Option<String>,
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
    serde_json::from_str(include_str!("catalog.json")).expect("a test parses the same text")
});

/// Returns the built-in catalog.
pub fn catalog() -> &'static Catalog {
    &CATALOG
}

impl Catalog {
    /// By its id or an alias, in any case.
    pub fn find(&self, name: &str) -> Option<&Entry> {
        let is_called = |entry: &&Entry| entry.names().any(|own| own.eq_ignore_ascii_case(name));
        self.models.iter().find(is_called)
    }

    /// Returns the entry and the quant that `owner/repository:quant` means, ignoring case.
    pub fn offered(&self, repository: &str, quant: &str) -> Option<(&Entry, &Quant)> {
        let mut entries = self.models.iter();
        let entry = entries.find(|entry| entry.repository.eq_ignore_ascii_case(repository))?;
        Some((entry, entry.quant(quant)?))
    }

    /// Returns the ids and aliases of all models.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.models.iter().flat_map(Entry::names)
    }

    /// Returns the names of the model whose file this is: its id and its aliases; none for a file of no model here.
    pub fn names_of(&self, file: &ModelId) -> Vec<String> {
        let is_of = |quant: &Quant| model_id(&quant.file) == *file;
        let entry = (self.models.iter()).find(|entry| entry.quants.iter().any(is_of));
        let names = entry.into_iter().flat_map(Entry::names);
        names.map(str::to_owned).collect()
    }

    /// Returns all models for the API, with verdicts for `machine`. None is marked as installed.
    pub fn wire(&self, machine: &Machine) -> Vec<CatalogModel> {
        let wire = |entry: &Entry| entry.wire(machine);
        self.models.iter().map(wire).collect()
    }
}

impl Entry {
    fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.id)
            .chain(&self.aliases)
            .map(String::as_str)
    }

    /// Returns the quant with this name, ignoring case.
    pub fn quant(&self, name: &str) -> Option<&Quant> {
        let mut quants = self.quants.iter();
        quants.find(|quant| quant.quant.eq_ignore_ascii_case(name))
    }

    /// The commit of a quant's facts, if known.
    pub fn revision<'a>(&'a self, quant: &'a Quant) -> Option<&'a str> {
        quant.revision.as_deref().or(self.revision.as_deref())
    }

    /// Returns the reference on the hub.
    pub fn reference(&self, quant: &Quant) -> String {
        format!("{}:{}", self.repository, quant.quant)
    }

    /// The quant to take on this machine: of chat models the one that [`recommend`] chooses, if any runs; of others the
    /// first.
    pub fn recommended(&self, profile: Profile, machine: &Machine) -> Option<&Quant> {
        if self.architecture.is_none() {
            return self.quants.first();
        }
        self.quant(&self.advice(profile, machine)?.quant)
    }

    /// What [`recommend`] says of a chat model.
    pub fn advice(&self, profile: Profile, machine: &Machine) -> Option<Instead> {
        let account = self.quants.iter().find_map(|quant| self.account(quant))?;
        let offers = self.offers();
        let context = ContextChoice {
            profile,
            ..ContextChoice::default()
        };
        recommend(&account, self.beside(), context, machine, &offers)
    }

    /// An estimated account; `None` where the architecture or the size is not known.
    pub fn account(&self, quant: &Quant) -> Option<ModelAccount> {
        let facts = self.architecture.as_ref()?;
        Some(facts.account(&self.name, &quant.quant, quant.size_bytes?))
    }

    /// Returns why a file is another model's, by its header. The parameters of a file vary too much to be compared.
    pub fn mismatch(&self, account: &ModelAccount) -> Option<Error> {
        let (name, facts) = (&self.name, self.architecture.as_ref()?);
        let found = &account.architecture;
        (*found != facts.name).then(|| {
            let message = format!(
                "the file is not {name}: its architecture is {found}, and that of {name} is {}",
                facts.name
            );
            Error::new(Code::ModelInvalid, message)
                .hint("its repository has another file under this name: choose another model")
        })
    }

    /// What is loaded beside its models.
    pub fn beside(&self) -> CompanionModels<'_> {
        CompanionModels::projector(self.projector.as_ref())
    }

    fn offers(&self) -> Vec<Offer> {
        let offer = |quant: &Quant| {
            Some(Offer {
                quant: quant.quant.clone(),
                reference: self.reference(quant),
                size_bytes: quant.size_bytes?,
            })
        };
        self.quants.iter().filter_map(offer).collect()
    }

    fn wire(&self, machine: &Machine) -> CatalogModel {
        let advice = self.advice(Profile::Balanced, machine);
        let recommended = match &self.architecture {
            None => self.quants.first(),
            Some(_) => advice.as_ref().and_then(|advice| self.quant(&advice.quant)),
        };
        let offers = self.offers();
        let offered = |quant: &Quant| {
            let fit = self.account(quant).map(|account| {
                let choice = ContextChoice::default();
                let mut fit = verdict_with(&account, self.beside(), choice, machine, &offers);
                fit.estimated = true;
                fit
            });
            let best = advice.as_ref().filter(|best| best.quant == quant.quant);
            OfferedFile {
                quant: quant.quant.clone(),
                reference: self.reference(quant),
                file: quant.file.clone(),
                parts: 1,
                size_bytes: quant.size_bytes,
                sha256: quant.sha256.clone(),
                loss: QuantLoss::of(&quant.quant),
                recommended: recommended == Some(quant),
                reason: best.map(|best| best.reason.clone()),
                grounds: best.and_then(|best| best.grounds.clone()),
                installed: false,
                fit,
            }
        };
        let facts = self.architecture.as_ref();
        CatalogModel {
            id: self.id.clone(),
            name: self.name.clone(),
            about: self.about.clone(),
            aliases: self.aliases.clone(),
            capabilities: Capabilities {
                inputs: self.inputs.clone(),
                thinking: facts.is_some_and(|facts| facts.thinking),
                tools: facts.is_some_and(|facts| facts.tools),
            },
            context_train: facts.map(|facts| facts.context_train),
            speeds: self.speeds.clone(),
            scores: self.scores.clone(),
            tier: self.tier.clone(),
            default: self.default,
            kind: self.kind,
            maker: self.maker.clone(),
            languages: self.languages.clone(),
            repository: self.repository.clone(),
            licence: self.licence.clone(),
            quants: self.quants.iter().map(offered).collect(),
            projector: self.projector.as_ref().map(Projector::offer),
        }
    }
}

impl MediaProjector for Projector {
    fn load_bytes(&self, context: u32, batch: u32) -> u64 {
        let encoders = [&self.vision, &self.audio];
        Encoder::load_bytes(self.size_bytes, encoders, context, batch)
    }
}

impl Projector {
    /// Returns it as the API offers it.
    pub fn offer(&self) -> OfferedProjector {
        OfferedProjector {
            file: self.file.clone(),
            size_bytes: Some(self.size_bytes),
            input_modalities: self.input_modalities.clone(),
        }
    }
}

impl Architecture {
    /// Experts have what the file's other weights leave, and those have the file's mean bits per weight, or in a mixture
    /// the spared ones' if these are more.
    fn account(&self, name: &str, quant: &str, file_bytes: u64) -> ModelAccount {
        let per_layer = self.per_layer_embedding_parameters;
        let input = u64::from(self.embedding) * u64::from(self.vocabulary);
        let others = [self.expert_parameters, per_layer, input];
        let dense = (others.into_iter()).fold(self.parameters, u64::saturating_sub);
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
            // The maker's published values apply.
            sampling: Sampling::default(),
        }
    }
}

#[cfg(test)]
mod tests;

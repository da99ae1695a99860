//! The models that the catalog and the hub offer, as the API returns them.

pub use crate::model::ModelKind;
use crate::{
    Modality,
    fit::{Grounds, QuantLoss, Verdict},
};
use serde::{Deserialize, Serialize};

/// One model of the checked-in catalog.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct CatalogModel {
    /// Its short name, such as `gemma-4-e4b`.
    pub id: String,
    /// The name for people.
    pub name: String,
    /// One sentence: what it is good for.
    pub about: String,
    /// Other names for it, such as Ollama's.
    pub aliases: Vec<String>,
    pub capabilities: Capabilities,
    /// The longest context that it was trained for, in tokens; `null` for a model that the engine does not run.
    pub context_train: Option<u32>,
    /// Speeds that others published, on their Macs. What to expect of this machine is in `fit`.
    pub speeds: Vec<PublishedSpeed>,
    /// Results that its maker published, of the model before quantization.
    pub scores: Vec<PublishedScore>,
    /// The tier that it suits, if it is a default or an alternative of one.
    pub tier: Option<String>,
    /// Whether it is the default of that tier.
    pub default: bool,
    /// `chat`, `embedding` or `reranking`.
    pub kind: ModelKind,
    /// Who made the model, which may be another than who published its files.
    pub maker: String,
    /// The languages that its maker names, as a phrase such as `more than 140`; `null` if it names none.
    pub languages: Option<String>,
    /// `owner/repository` on the hub.
    pub repository: String,
    pub licence: String,
    pub quants: Vec<OfferedFile>,
    /// Downloaded with each of them, unless it is left out.
    pub projector: Option<OfferedProjector>,
}

/// The media projector of a repository's models, with which they take images and sound.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct OfferedProjector {
    /// The file in the repository.
    pub file: String,
    /// `null` if only the hub knows it.
    pub size_bytes: Option<u64>,
    /// What a message may contain with it; empty if its header was not read.
    pub input_modalities: Vec<Modality>,
}

/// What a model can do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Capabilities {
    /// What it takes. All but text needs its media projector.
    pub inputs: Vec<Modality>,
    /// Whether it can reason before it answers.
    pub thinking: bool,
    /// Whether it was trained to call tools.
    pub tools: bool,
}

/// A speed published for a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PublishedSpeed {
    /// Such as `Apple M4 Pro`.
    pub chip: String,
    /// `null`: not published.
    pub ram_gb: Option<u32>,
    /// Generated.
    pub tokens_per_second: f64,
    /// `null`: not published.
    pub quant: Option<String>,
    /// Such as `llama.cpp`.
    pub engine: String,
    /// The page that has it.
    pub source: String,
}

/// A result of a benchmark that a model's maker published.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PublishedScore {
    /// Such as `MMLU-Pro`.
    pub benchmark: String,
    /// In percent.
    pub score: f64,
    /// The page that has it.
    pub source: String,
}

/// The outcome of updating the list from the hub.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct CatalogRefresh {
    /// When, RFC 3339.
    pub refreshed: String,
    /// The models whose files, sizes and hashes are now the hub's.
    pub updated: Vec<String>,
    /// The others keep what was known of them.
    pub failed: Vec<RefreshFailure>,
}

/// Why a model of the list was not updated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RefreshFailure {
    pub id: String,
    pub name: String,
    pub repository: String,
    pub reason: String,
}

/// One quant that can be downloaded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct OfferedFile {
    pub quant: String,
    /// The reference to download it by, such as `unsloth/gemma-4-E4B-it-GGUF:Q4_K_M`.
    pub reference: String,
    /// The file in the repository; the first of several parts.
    pub file: String,
    pub parts: u32,
    /// The size of all parts; `null` if only the hub knows it.
    pub size_bytes: Option<u64>,
    /// Lower-case hex. `null`: not known yet; the download is compared with the hub's, which is kept from then on.
    pub sha256: Option<String>,
    /// How much worse than 16 bits it answers; `null` if no measurement of the quant is published.
    pub loss: Option<QuantLoss>,
    /// Whether it is the best choice for this machine.
    pub recommended: bool,
    /// Why it is recommended.
    pub reason: Option<String>,
    /// What `reason` says, with the figures, for other languages.
    pub grounds: Option<Grounds>,
    /// Whether the models folder has it.
    pub installed: bool,
    /// `null` for what the engine cannot run by itself, and for an unknown model.
    pub fit: Option<Verdict>,
}

/// A repository that a search of the hub has found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct HubModel {
    pub repository: String,
    pub downloads: u64,
    pub likes: u64,
    /// When it last changed, RFC 3339.
    pub updated: Option<String>,
    /// Whether its license must be accepted before the download.
    pub gated: bool,
}

/// A repository's models.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct HubRepository {
    pub repository: String,
    /// The commit of the files.
    pub revision: String,
    pub licence: Option<String>,
    pub gated: bool,
    pub files: Vec<OfferedFile>,
    /// Downloaded with each of them, unless it is left out.
    pub projector: Option<OfferedProjector>,
}

/// What a repository says of its models.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct HubReadme {
    pub repository: String,
    /// Its page on the hub.
    pub url: String,
    /// Markdown, without metadata, HTML tags and pictures.
    pub text: String,
}

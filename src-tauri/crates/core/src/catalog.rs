//! The models that the catalog and the hub offer, as the API returns them.

pub use crate::model::ModelKind;
use crate::{config::KvCache, fit::Verdict};
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
    /// The tier that it suits, if it is a default or an alternative of one.
    #[schema(required = true)]
    pub tier: Option<String>,
    /// Whether it is the default of that tier.
    pub default: bool,
    /// `chat`, `embedding` or `reranking`.
    pub kind: ModelKind,
    /// `owner/repository` on the hub.
    pub repository: String,
    pub licence: String,
    /// The context that the verdicts are for, in tokens.
    pub context_tokens: u32,
    pub kv_cache: KvCache,
    pub quants: Vec<OfferedFile>,
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
    #[schema(required = true)]
    pub size_bytes: Option<u64>,
    /// Lower-case hex. `null`: not known here, taken from the hub at download.
    #[schema(required = true)]
    pub sha256: Option<String>,
    /// Whether it is the best choice for this machine.
    pub recommended: bool,
    /// Whether the models folder has it.
    pub installed: bool,
    /// `null` for what the engine cannot run by itself, and for an unknown model.
    #[schema(required = true)]
    pub fit: Option<Verdict>,
}

/// A repository that a search of the hub has found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct HubModel {
    pub repository: String,
    pub downloads: u64,
    pub likes: u64,
    /// When it last changed, RFC 3339.
    #[schema(required = true)]
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
    #[schema(required = true)]
    pub licence: Option<String>,
    pub gated: bool,
    pub files: Vec<OfferedFile>,
}

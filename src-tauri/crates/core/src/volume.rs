//! How full disks are, and how full we leave them.

use crate::{budget::sum, fit::Keeper};
use serde::{Deserialize, Serialize};

/// Left free for the system and for what else is being written: 1 GiB.
const MARGIN: u64 = 1 << 30;
/// Of a volume smaller than 20 GiB it is this part.
const MARGIN_SHARE: u64 = 20;

/// A disk with models, or with the models folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ModelDisk {
    /// The models folder, or another folder of models on it.
    pub folder: String,
    pub size_bytes: u64,
    /// What this user may still use.
    pub free_bytes: u64,
    /// What the models on it take, by where they are kept.
    pub models: Vec<KeptModels>,
}

/// The models that one app or folder keeps on a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct KeptModels {
    pub keeper: Keeper,
    /// With their projectors.
    pub bytes: u64,
}

impl ModelDisk {
    /// Returns what all models on it take.
    pub fn models_bytes(&self) -> u64 {
        sum(self.models.iter().map(|kept| kept.bytes))
    }
}

/// Bytes to be left free on a volume of so many.
pub fn margin(size_bytes: u64) -> u64 {
    MARGIN.min(size_bytes / MARGIN_SHARE)
}

//! The entries of the download queue, one for each model.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The download of one model to the models folder. A model of several parts is one download.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DownloadStatus {
    pub id: String,
    /// The requested reference, such as `unsloth/gemma-4-E2B-it-GGUF:Q4_K_M` or a URL without its query.
    pub reference: String,
    /// The first file's name in the models folder.
    pub file: String,
    /// All of its files: the parts of a model, and its media projector.
    #[serde(default)]
    #[schema(required = true)]
    pub files: Vec<DownloadFile>,
    pub state: DownloadState,
    pub priority: Priority,
    /// Bytes safely on disk.
    pub received_bytes: u64,
    /// `null` until a server has reported it.
    pub total_bytes: Option<u64>,
    /// Over the last five seconds; 0 while nothing arrives.
    pub bytes_per_second: u64,
    /// `null` while there is no rate.
    pub eta_seconds: Option<u64>,
    /// One sentence: why the download waits or failed, and what to do.
    pub reason: Option<String>,
    /// Warnings, such as a nearly full disk or a model that hardly fits.
    pub warnings: Vec<String>,
}

/// One file of a download.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DownloadFile {
    /// The name in the models folder.
    pub name: String,
    /// `null` until a server has reported it.
    pub size_bytes: Option<u64>,
}

impl DownloadFile {
    /// Returns whether it is a media projector, by its name.
    pub fn is_projector(&self) -> bool {
        self.name.to_ascii_lowercase().contains("mmproj")
    }
}

impl DownloadStatus {
    /// Returns how much has been received, in percent; `None` if the size is unknown.
    pub fn percent(&self) -> Option<u64> {
        let total = self.total_bytes.filter(|total| *total > 0)?;
        u64::try_from(u128::from(self.received_bytes) * 100 / u128::from(total)).ok()
    }

    /// Returns the size of the model's files and that of its projector, if it has both and they are known.
    pub fn with_projector(&self) -> Option<(u64, u64)> {
        let (projector, model): (Vec<_>, Vec<_>) =
            self.files.iter().partition(|file| file.is_projector());
        let sum = |files: Vec<&DownloadFile>| {
            let known: Option<u64> = files.iter().map(|file| file.size_bytes).sum();
            known.filter(|_| !files.is_empty())
        };
        Some((sum(model)?, sum(projector)?))
    }
}

/// Which files of a model to download.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Include {
    /// The model, and its media projector if its repository has one.
    #[default]
    All,
    /// Without the projector: the model takes text only.
    Model,
    /// The projector of an installed model.
    Projector,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum DownloadState {
    /// Waits for its turn.
    Queued,
    Downloading,
    /// No data arrives (no network, a failing server or a rate limit); continues by itself.
    Waiting,
    /// All bytes have arrived and are being hashed.
    Verifying,
    /// Paused by the user until resumed.
    Paused,
    /// Does not continue by itself. The bytes that have arrived are kept for a retry.
    Failed,
    /// Verified, and in the models folder under its name.
    Done,
}

impl DownloadState {
    /// Returns whether the download will complete by itself.
    pub fn is_under_way(self) -> bool {
        matches!(
            self,
            Self::Queued | Self::Downloading | Self::Waiting | Self::Verifying
        )
    }
}

/// Of two waiting downloads, the one of higher priority starts first; of two alike, the older.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    Low,
    #[default]
    Normal,
    High,
}

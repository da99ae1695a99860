//! What the download queue tells: one entry for each model that is fetched.

use serde::{Deserialize, Serialize};

/// One model on its way from a server to the models folder. A model of several parts is one download.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct DownloadStatus {
    pub id: String,
    /// What was asked for, such as `unsloth/gemma-4-E2B-it-GGUF:Q4_K_M` or a URL without its query.
    pub reference: String,
    /// The first file's name in the models folder.
    pub file: String,
    pub state: DownloadState,
    pub priority: Priority,
    /// Bytes that lie safely on the disk.
    #[cfg_attr(test, ts(type = "number"))]
    pub received_bytes: u64,
    /// `null` until a server has told it.
    #[cfg_attr(test, ts(type = "number | null"))]
    pub total_bytes: Option<u64>,
    /// Over the last five seconds; 0 while nothing arrives.
    #[cfg_attr(test, ts(type = "number"))]
    pub bytes_per_second: u64,
    /// `null` while the rate says nothing.
    #[cfg_attr(test, ts(type = "number | null"))]
    pub eta_seconds: Option<u64>,
    /// One plain sentence: why it waits, or failed and what to do.
    pub reason: Option<String>,
    /// What the user should know before the last byte: a full disk, a model that hardly fits.
    pub warnings: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum DownloadState {
    /// Waits for its turn.
    Queued,
    Downloading,
    /// Nothing arrives (no network, a server that fails or asks for patience); goes on by itself.
    Waiting,
    /// All bytes are here; what resumed or repeated work left unhashed is hashed.
    Verifying,
    /// By the user; goes on when the user says so.
    Paused,
    /// Will not go on by itself. What has arrived is kept for another try.
    Failed,
    /// Verified, and in the models folder under its name.
    Done,
}

impl DownloadState {
    /// Whether it still means to end as [`DownloadState::Done`] without anybody's help.
    #[must_use]
    pub fn is_under_way(self) -> bool {
        matches!(
            self,
            Self::Queued | Self::Downloading | Self::Waiting | Self::Verifying
        )
    }
}

/// Of two that wait, the higher goes first; of two alike, the older.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum Priority {
    Low,
    #[default]
    Normal,
    High,
}

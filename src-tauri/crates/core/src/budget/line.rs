//! The lines of a load's plan.

use serde::{Deserialize, Serialize};

/// One line of the sum.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Line {
    pub what: LineKind,
    #[cfg_attr(test, ts(type = "number"))]
    pub bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum LineKind {
    DenseWeights,
    /// Input embeddings, of which a token reads one row.
    Embeddings,
    /// Of a dense model's weights, what exceeds the budget and is read from the disk as it is needed; not part of the sum.
    PagedWeights,
    /// Expert weights that stay in memory.
    ResidentExperts,
    /// Expert weights that are read from the disk as they are needed; not part of the sum.
    PagedExperts,
    KvCache,
    ComputeBuffers,
    /// States of earlier positions, of a model that forgets them: what going back in a conversation takes.
    Checkpoints,
    /// A smaller model that guesses tokens: its weights, cache and buffers.
    DraftModel,
    /// A model's media projector: its weights, and what encoding its largest image or 30 seconds of sound takes.
    Projector,
    /// A program of the user's: what they say that it takes.
    Command,
    /// The slot that is kept free for a small embedding model.
    Embedder,
    /// Tierbar's own windows.
    App,
}

impl LineKind {
    /// Whether it lies on the disk until it is needed, and is no part of the sum.
    #[must_use]
    pub fn is_paged(self) -> bool {
        matches!(self, Self::PagedWeights | Self::PagedExperts)
    }
}

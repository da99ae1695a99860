//! The lines of a load's plan.

use serde::{Deserialize, Serialize};

/// One line of the sum.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Line {
    pub what: LineKind,
    pub bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LineKind {
    DenseWeights,
    /// Input embeddings, of which a token reads one row.
    Embeddings,
    /// The part of a dense model's weights that exceeds the budget and is read from disk as needed; not part of the sum.
    PagedWeights,
    /// Expert weights that stay in memory.
    ResidentExperts,
    /// The memory for experts that are read when they are chosen.
    ExpertCache,
    /// Expert weights that are read from disk as needed; not part of the sum.
    PagedExperts,
    /// The memory for a dense model's layers, of which the others are read for every token.
    LayerCache,
    KvCache,
    ComputeBuffers,
    /// States of earlier positions, which a model with a sliding window or recurrent layers needs to go back in a
    /// conversation.
    Checkpoints,
    /// A draft model: its weights, cache and buffers.
    DraftModel,
    /// A media projector: its weights, and what encoding its largest image or 30 seconds of sound needs.
    Projector,
    /// The memory that the user has declared for a command.
    Command,
    /// Memory left to the embedder's slot.
    Embedder,
    /// Tierbar's own windows.
    App,
}

impl LineKind {
    /// Returns whether the line is on disk until needed, and so not part of the sum.
    #[must_use]
    pub fn is_paged(self) -> bool {
        matches!(self, Self::PagedWeights | Self::PagedExperts)
    }
}

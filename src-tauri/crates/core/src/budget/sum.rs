//! The one sum of a load, line by line.

use super::{Budget, CHECKPOINT_BYTES, Line, LineKind, LoadPlan, MIB, Placement, SLOTS};
use crate::{
    model::ModelAccount,
    run::{KvCache, Paging},
};

/// The app with its tray and no window, proportional set size on Linux as the README has it. A window's pages are drawn
/// by the system's own web engine, and are there only while it is open.
const APP: u64 = 96 * MIB;
/// Room for one small embedding model beside the generative one: nomic-embed-text v1.5 in Q8_0 (146,146,432 bytes), which
/// keeps no cache, and 32 MiB for its buffers.
const EMBEDDER: u64 = 146_146_432 + 32 * MIB;

/// What a model needs when nothing of it is left on the disk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Needs {
    pub(crate) dense: u64,
    pub(crate) embeddings: u64,
    /// Of the embeddings, those of which a token reads one row.
    row_read: u64,
    pub(crate) experts: u64,
    pub(crate) kv: u64,
    pub(crate) compute: u64,
    pub(crate) checkpoints: u64,
    /// The least that a cache of experts must hold.
    pub(super) least_cache: u64,
    /// Of a dense model's weights, those that can be read layer by layer, and the least of them that must be in memory.
    feed_forward: u64,
    least_layers: u64,
    context: u32,
}

/// The context is capped at what the model was trained for, as the engine does.
pub(crate) fn needs(model: &ModelAccount, context: u32, kv: KvCache, batch: u32) -> Needs {
    let context = context.min(model.context_train.max(1));
    Needs {
        dense: model.dense_bytes,
        embeddings: model
            .embedding_bytes
            .saturating_add(model.per_layer_embedding_bytes),
        row_read: model.row_read_bytes(),
        experts: model.expert_bytes,
        kv: model.kv.bytes_in_batches(context, kv, batch),
        compute: compute_bytes(model, context, batch),
        checkpoints: if model.kv.forgets() {
            CHECKPOINT_BYTES
        } else {
            0
        },
        least_cache: least_cache(model),
        feed_forward: model.feed_forward_bytes.min(model.dense_bytes),
        least_layers: two_layers(model, model.feed_forward_bytes),
        context,
    }
}

/// What one token uses of all layers, which a smaller cache would never hold; and two layers, of which one is computed with
/// while the next is read. Experts seldom end where pages do, so each takes a little more in memory.
fn least_cache(model: &ModelAccount) -> u64 {
    let experts = u64::from(model.experts.max(1));
    let cycle = model.expert_bytes / experts * u64::from(model.experts_used.min(model.experts));
    (cycle / 32 * 33 + MIB).max(two_layers(model, model.expert_bytes))
}

/// Two layers, of which one is computed with while the next is read. Their parts seldom end where pages do.
fn two_layers(model: &ModelAccount, all_layers: u64) -> u64 {
    let average = all_layers / u64::from(model.layers.max(1));
    // The worker gets whole mebibytes.
    average.max(model.largest_layer_bytes).saturating_mul(2) / 32 * 33 + MIB
}

impl Needs {
    pub(crate) fn total_bytes(&self) -> u64 {
        self.engine_bytes()
            .saturating_add(self.checkpoints)
            .saturating_add(EMBEDDER + APP)
    }

    /// What llama.cpp allocates of it, on the GPU if it can.
    pub(crate) fn engine_bytes(&self) -> u64 {
        [
            self.dense,
            self.embeddings,
            self.experts,
            self.kv,
            self.compute,
        ]
        .into_iter()
        .fold(0, u64::saturating_add)
    }

    /// Most that a plan may leave on the disk.
    pub(super) fn pageable_bytes(&self, budget: &Budget) -> u64 {
        let read_by_each_token = if self.experts > 0 {
            // With none of the experts in memory, each token would read all that it uses.
            self.experts - 1
        } else {
            let tied = self.embeddings - self.row_read;
            let some = budget
                .overcommit_bytes()
                .min(self.dense.saturating_add(tied));
            if budget.paging == Paging::Stream {
                some.max(self.feed_forward.saturating_sub(self.least_layers))
            } else {
                some
            }
        };
        self.row_read.saturating_add(read_by_each_token)
    }

    /// Returns whether the experts can be cached if `paged` bytes stay on the disk.
    pub(super) fn can_cache(&self, paged: u64) -> bool {
        let experts = paged.saturating_sub(self.row_read);
        let held = self.experts.saturating_sub(experts);
        self.experts > 0 && experts > 0 && held >= self.least_cache
    }

    /// Returns whether layers can be read one after another if `paged` bytes stay on the disk.
    pub(super) fn can_stream(&self, paged: u64) -> bool {
        let layers = paged.saturating_sub(self.row_read);
        let most = self.feed_forward.saturating_sub(self.least_layers);
        self.experts == 0 && (1..=most).contains(&layers)
    }

    /// The plan that leaves `paged` bytes on the disk: first what is hardly read, then experts, then other weights.
    pub(super) fn plan(&self, placement: Placement, paged: u64) -> LoadPlan {
        let rows = paged.min(self.row_read);
        let experts = (paged - rows).min(self.experts);
        let dense = (paged - rows - experts).min(self.dense);
        let embeddings = paged - experts - dense;
        let held = if placement == Placement::Cache {
            LineKind::ExpertCache
        } else {
            LineKind::ResidentExperts
        };
        let layers = if placement == Placement::Stream {
            self.feed_forward - dense
        } else {
            0
        };
        let lines = [
            (LineKind::DenseWeights, self.dense - dense - layers),
            (LineKind::LayerCache, layers),
            (LineKind::Embeddings, self.embeddings - embeddings),
            (LineKind::PagedWeights, dense + embeddings),
            (held, self.experts - experts),
            (LineKind::PagedExperts, experts),
            (LineKind::KvCache, self.kv),
            (LineKind::ComputeBuffers, self.compute),
            (LineKind::Checkpoints, self.checkpoints),
            (LineKind::Embedder, EMBEDDER),
            (LineKind::App, APP),
        ];
        let lines = lines.into_iter().filter(|(_, bytes)| *bytes > 0);
        LoadPlan {
            placement,
            lines: lines.map(|(what, bytes)| Line { what, bytes }).collect(),
            context_tokens: self.context,
        }
    }
}

/// An upper estimate of the compute graph's buffers.
///
/// llama.cpp reserves them for a micro-batch of which each slot has one output. The widest layer is taken for 16
/// activations of the residual stream's width; a mask has 2 bytes for each token of the batch and cell of the cache, and
/// is counted twice. Held against the worker's own figures for SmolLM2 135M and Gemma 3 270M by this module's test.
fn compute_bytes(model: &ModelAccount, context: u32, batch: u32) -> u64 {
    let batch = u64::from(batch);
    let logits = u64::from(SLOTS) * u64::from(model.vocabulary) * 4;
    let activation = batch * u64::from(model.embedding) * 4;
    let mask = batch * u64::from(context) * 4;
    activation
        .saturating_mul(16)
        .saturating_add(logits)
        .saturating_add(mask)
        .saturating_add(16 * MIB)
}

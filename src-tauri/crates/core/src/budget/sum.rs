//! The one sum of a load, line by line.

use super::{
    Budget, CHECKPOINT_BYTES, EMBEDDER, EMBEDDER_SLOT, Line, LineKind, LoadPlan, MIB, Placement,
    SLOTS,
};
use crate::{
    model::{ModelAccount, ModelKind},
    run::{KvCache, Paging},
    tier::TierKind,
};

/// The app with its tray and no window, proportional set size on Linux as the README has it. A window's pages are drawn
/// by the system's own web engine, and are there only while it is open.
const APP: u64 = 96 * MIB;
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
    /// The embedder's slot and the app's windows.
    embedder: u64,
    app: u64,
    kind: TierKind,
}

/// The context is capped at what the model was trained for, as the engine does.
///
/// A model for embeddings or reranking that fits the slot is planned without the lines that a generative one leaves to others.
pub(crate) fn needs(model: &ModelAccount, context: u32, kv: KvCache, batch: u32) -> Needs {
    let context = context.min(model.context_train.max(1));
    let generates = model.kind == ModelKind::Chat;
    let needs = Needs {
        dense: model.dense_bytes,
        embeddings: sum([model.embedding_bytes, model.per_layer_embedding_bytes]),
        row_read: model.row_read_bytes(),
        experts: model.expert_bytes,
        kv: model.kv.bytes_in_batches(context, kv, batch),
        compute: match generates {
            true => compute_bytes(model, context, batch),
            false => pooling_bytes(model, context.max(batch)),
        },
        checkpoints: match generates && model.kv.forgets() {
            true => CHECKPOINT_BYTES,
            false => 0,
        },
        least_cache: least_cache(model),
        feed_forward: model.feed_forward_bytes.min(model.dense_bytes),
        least_layers: two_layers(model, model.feed_forward_bytes),
        context,
        embedder: EMBEDDER,
        app: APP,
        kind: TierKind::Generative,
    };
    if !generates && needs.engine_bytes() <= EMBEDDER_SLOT {
        return Needs {
            embedder: 0,
            app: 0,
            kind: TierKind::Embedder,
            ..needs
        };
    }
    needs
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
    // The worker gets whole mebibytes.
    largest_layer(model, all_layers).saturating_mul(2) / 32 * 33 + MIB
}

fn largest_layer(model: &ModelAccount, all_layers: u64) -> u64 {
    let average = all_layers / u64::from(model.layers.max(1));
    average.max(model.largest_layer_bytes)
}

impl Needs {
    pub(crate) fn total_bytes(&self) -> u64 {
        sum([
            self.engine_bytes(),
            self.checkpoints,
            self.embedder,
            self.app,
        ])
    }

    /// The same where a generative model leaves as much to the embedder's slot as this budget says.
    pub(super) fn within(self, budget: &Budget) -> Self {
        match self.kind {
            TierKind::Embedder => self,
            TierKind::Generative => Self {
                embedder: budget.embedder_bytes,
                ..self
            },
        }
    }

    /// The same where the GPU computes prompts with experts that are off it: llama.cpp reserves a copy of what it computes with at once,
    /// which is at most a layer's.
    pub(super) fn with_gpu_prompts(self, model: &ModelAccount) -> Self {
        let copy = largest_layer(model, self.experts);
        Self {
            compute: sum([self.compute, copy]),
            ..self
        }
    }

    /// What llama.cpp allocates of it, on the GPU if it can.
    pub(crate) fn engine_bytes(&self) -> u64 {
        sum([
            self.dense,
            self.embeddings,
            self.experts,
            self.kv,
            self.compute,
        ])
    }

    pub(super) fn pageable_bytes(&self, budget: &Budget) -> u64 {
        let read_by_each_token = if self.experts > 0 {
            // With none of the experts in memory, each token would read all that it uses.
            self.experts - 1
        } else {
            let tied = self.embeddings - self.row_read;
            let some = budget.overcommit_bytes().min(sum([self.dense, tied]));
            match budget.paging {
                Paging::Stream => some.max(self.feed_forward.saturating_sub(self.least_layers)),
                _ => some,
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
        let held = match placement {
            Placement::Cache => LineKind::ExpertCache,
            _ => LineKind::ResidentExperts,
        };
        let layers = match placement {
            Placement::Stream => self.feed_forward - dense,
            _ => 0,
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
            (LineKind::Embedder, self.embedder),
            (LineKind::App, self.app),
        ];
        let lines = lines.into_iter().filter(|(_, bytes)| *bytes > 0);
        LoadPlan {
            placement,
            lines: lines.map(|(what, bytes)| Line { what, bytes }).collect(),
            context_tokens: self.context,
            // What is partly on the disk reads from it as it computes, as large models do.
            kind: match placement {
                Placement::Resident => self.kind,
                _ => TierKind::Generative,
            },
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
    sum([activation.saturating_mul(16), logits, mask, 16 * MIB])
}

/// The same for a model that pools the outputs of a text's tokens, of which it may evaluate `tokens` at once: all of them are
/// outputs.
///
/// llama.cpp keeps a row of embeddings for each output, and one of logits, which the worker gives back unless the model computes
/// them: an encoder has no cache and no logits. Encoders of 22 to 350 million parameters allocated 4 to 8 activations of the
/// stream's width for the graph, and 12 are counted.
fn pooling_bytes(model: &ModelAccount, tokens: u32) -> u64 {
    let tokens = u64::from(tokens);
    let width = u64::from(model.embedding);
    let graph = (tokens * width * 4).saturating_mul(12);
    let reads_logits = model.kv.full_elements_per_token > 0;
    let logits = u64::from(model.vocabulary) * u64::from(reads_logits);
    let outputs = (tokens * 4).saturating_mul(logits.saturating_add(width));
    sum([graph, outputs, tokens * tokens * 4, 16 * MIB])
}

/// Returns the sum, or the most that can be counted: what an absurd header says.
pub(crate) fn sum(parts: impl IntoIterator<Item = u64>) -> u64 {
    parts.into_iter().fold(0, u64::saturating_add)
}

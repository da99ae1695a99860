//! How many layers the GPU holds, as the worker has llama.cpp offload them.

use super::GpuShare;
use crate::{
    budget::{LineKind, LoadPlan, Placement, needs, sum},
    config::KvCache,
    model::ModelAccount,
};

/// Returns the most layers of a planned load whose bytes stay within `limit_bytes`.
///
/// A mixture of which experts stay on the disk keeps all of them with the CPU, which reads them when they are chosen. The GPU gets
/// copies of what every token reads: attention, norms, shared experts and the cache. So does a dense model whose layers are
/// read one after another, with their feed-forward matrices.
///
/// The whole model if that does: llama.cpp maps one range of the file for the GPU, also embeddings in it that the CPU
/// reads. Else layers alone, from the last; what belongs to none stays on the CPU. With a layer goes its part of the KV
/// cache, and with the first of them the compute buffers. Layers are counted as equally large.
pub fn share(
    model: &ModelAccount,
    plan: &LoadPlan,
    kv: KvCache,
    batch: u32,
    limit_bytes: u64,
) -> GpuShare {
    let mut needs = needs(model, plan.context_tokens, kv, batch);
    // These depend on how the model is paged, too.
    needs.compute = plan.bytes(LineKind::ComputeBuffers);
    let without_experts = plan.bytes(LineKind::PagedExperts) > 0;
    let without_layers = plan.placement == Placement::Stream;
    if without_experts || without_layers {
        needs.experts = 0;
        if without_layers {
            needs.dense -= model.feed_forward_bytes.min(needs.dense);
        }
        // Nor does it get what the CPU reads a row of.
        needs.embeddings = match model.tied_output {
            true => model.embedding_bytes,
            false => 0,
        };
    }
    let layers = model.layers.max(1);
    let whole = needs.engine_bytes();
    let (count, bytes) = if whole <= limit_bytes {
        (layers.saturating_add(1), whole)
    } else {
        // An output layer has the shape of the input embeddings, and no fewer bits.
        let output = match model.tied_output {
            true => 0,
            false => model.embedding_bytes,
        };
        let dense = needs.dense.saturating_sub(output);
        let in_layers = sum([dense, needs.experts, needs.kv]);
        let bytes_of = |count: u32| {
            // 128 bits hold the product of a file's bytes with a number of layers.
            let share = u128::from(in_layers) * u128::from(count) / u128::from(layers);
            sum([needs.compute, u64::try_from(share).unwrap_or(u64::MAX)])
        };
        let most = (1..=layers)
            .rev()
            .find(|count| bytes_of(*count) <= limit_bytes);
        most.map_or((0, 0), |count| (count, bytes_of(count)))
    };
    GpuShare {
        layers: count,
        layers_all: layers.saturating_add(1),
        bytes,
        limit_bytes,
        without_experts: without_experts || without_layers,
    }
}

impl GpuShare {
    /// Returns the worker's `--gpu-layers`; `None` if the GPU holds the whole model.
    pub fn fewer_layers(&self) -> Option<u32> {
        (self.layers < self.layers_all).then_some(self.layers)
    }
}

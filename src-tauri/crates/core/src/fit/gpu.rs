//! How many layers the GPU holds, as the worker has llama.cpp offload them.

use super::GpuShare;
use crate::{budget::needs, config::KvCache, model::ModelAccount};

/// Returns the most layers whose bytes stay within `limit_bytes`.
///
/// The whole model if that does: llama.cpp maps one range of the file for the GPU, also embeddings in it that the CPU
/// reads. Else layers alone, from the last; what belongs to none stays on the CPU. With a layer goes its part of the KV
/// cache, and with the first of them the compute buffers. Layers are counted as equally large; experts that are read from
/// the disk count too, since Metal keeps in memory what is mapped for it.
#[must_use]
pub fn share(
    model: &ModelAccount,
    context: u32,
    kv: KvCache,
    batch: u32,
    limit_bytes: u64,
) -> GpuShare {
    let needs = needs(model, context, kv, batch);
    let layers = model.layers.max(1);
    let whole = needs.engine_bytes();
    let (count, bytes) = if whole <= limit_bytes {
        (layers.saturating_add(1), whole)
    } else {
        // An output layer has the shape of the input embeddings, and no fewer bits.
        let output = if model.tied_output {
            0
        } else {
            model.embedding_bytes
        };
        let in_layers = needs.dense.saturating_sub(output);
        let in_layers = [in_layers, needs.experts, needs.kv]
            .into_iter()
            .fold(0, u64::saturating_add);
        let bytes_of = |count: u32| {
            // 128 bits hold the product of a file's bytes with a number of layers.
            let share = u128::from(in_layers) * u128::from(count) / u128::from(layers);
            needs
                .compute
                .saturating_add(u64::try_from(share).unwrap_or(u64::MAX))
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
    }
}

impl GpuShare {
    /// Returns the worker's `--gpu-layers`; `None` if the GPU holds the whole model.
    #[must_use]
    pub fn fewer_layers(&self) -> Option<u32> {
        (self.layers < self.layers_all).then_some(self.layers)
    }
}

//! How many layers the GPU holds, as llama.cpp offloads them.

use super::GpuShare;
use crate::{budget::needs, config::KvCache, model::ModelAccount};

/// The output layer is often one quant step larger than the input embeddings of the same shape: Q6_K beside Q4_K.
const OUTPUT_OVER_EMBEDDINGS: (u64, u64) = (3, 2);

/// The most layers whose bytes stay within `limit_bytes`.
///
/// llama.cpp keeps the input embeddings on the CPU, and offloads the output first, then layers from the last. With a layer
/// goes its part of the KV cache, and with the first of them the compute buffers. Layers are counted as equally large;
/// experts that are read from the disk count too, since a layer's tensors lie where the layer does.
#[must_use]
pub fn share(model: &ModelAccount, context: u32, kv: KvCache, limit_bytes: u64) -> GpuShare {
    let needs = needs(model, context, kv);
    let layers = u64::from(model.layers.max(1));
    let (output, in_layers) = if model.tied_output {
        (model.embedding_bytes, needs.dense)
    } else {
        let (times, per) = OUTPUT_OVER_EMBEDDINGS;
        let output = (model.embedding_bytes / per)
            .saturating_mul(times)
            .min(needs.dense);
        (output, needs.dense - output)
    };
    let in_layers = in_layers
        .saturating_add(needs.experts)
        .saturating_add(needs.kv);
    let fixed = needs.compute.saturating_add(output);
    let bytes_of = |count: u64| match count {
        0 => 0,
        // A sum of sizes of one file: 128 bits hold its product with a number of layers.
        _ => {
            let share = u128::from(in_layers) * u128::from(count - 1) / u128::from(layers);
            fixed.saturating_add(u64::try_from(share).unwrap_or(u64::MAX))
        }
    };
    let count = (1..=layers + 1)
        .rev()
        .find(|count| bytes_of(*count) <= limit_bytes)
        .unwrap_or(0);
    GpuShare {
        layers: u32::try_from(count).unwrap_or(u32::MAX),
        layers_all: model.layers.max(1).saturating_add(1),
        bytes: bytes_of(count),
        limit_bytes,
    }
}

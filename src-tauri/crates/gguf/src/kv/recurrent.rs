//! Which layers keep a state of fixed size, and its bytes.

use crate::{fault::Fault, keys::HeaderKeys};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LayerKind {
    Attention,
    Recurrent,
    Both,
}

impl LayerKind {
    pub(super) fn without_attention(self) -> bool {
        self == Self::Recurrent
    }
}

/// One per layer that the engine runs.
pub(super) fn layers(
    keys: &HeaderKeys,
    layers_all: u32,
    layers: u32,
    kv_heads: &[u32],
) -> Result<Vec<LayerKind>, Fault> {
    let all = |layer| vec![layer; layers as usize];
    let by = |recurrent: &dyn Fn(usize) -> bool| {
        let layer = |layer| {
            if recurrent(layer) {
                LayerKind::Recurrent
            } else {
                LayerKind::Attention
            }
        };
        (0..layers as usize).map(layer).collect()
    };
    Ok(match keys.architecture {
        "mamba" | "mamba2" | "rwkv6" | "rwkv6qwen2" | "rwkv7" | "arwkv7" => {
            all(LayerKind::Recurrent)
        }
        "falcon-h1" => all(LayerKind::Both),
        "qwen3next" | "qwen35" | "qwen35moe" | "qwen4exp" | "minimax-01" => {
            if let Some(listed) = keys.per_layer("attention.recurrent_layers", layers_all)? {
                by(&|layer| listed[layer] != 0)
            } else {
                let interval = keys.number("full_attention_interval")?.unwrap_or(4) as usize;
                if interval == 0 {
                    return keys.wrong("full_attention_interval", "is 0");
                }
                by(&|layer| !(layer + 1).is_multiple_of(interval))
            }
        }
        "nemotron_h" | "nemotron_h_moe" => {
            // Layers of these are one of three: attention, recurrent, or feed-forward alone.
            let feed_forward = keys.per_layer("feed_forward_length", layers_all)?;
            let has_feed_forward =
                |layer: usize| feed_forward.as_ref().is_some_and(|sizes| sizes[layer] != 0);
            by(&|layer| kv_heads[layer] == 0 && !has_feed_forward(layer))
        }
        "bailingmoe3" | "glm5-next" | "granitehybrid" | "jamba" | "kimi-k3" | "kimi-linear"
        | "lfm2" | "lfm2moe" | "plamo2" => by(&|layer| kv_heads[layer] == 0),
        _ => all(LayerKind::Attention),
    })
}

/// Bytes of the states of one sequence, which llama.cpp keeps in 32-bit floats.
pub(super) fn state_bytes(
    keys: &HeaderKeys,
    layers: &[LayerKind],
    heads: u32,
) -> Result<u64, Fault> {
    let count = layers
        .iter()
        .filter(|&&layer| layer != LayerKind::Attention)
        .count() as u64;
    if count == 0 {
        return Ok(0);
    }
    let elements = layer_elements(keys, heads.into())?;
    Ok(elements.saturating_mul(4).saturating_mul(count))
}

/// `n_embd_r` and `n_embd_s` of `llama-hparams.cpp`: the convolution's or token shift's rows, and the state proper.
fn layer_elements(keys: &HeaderKeys, heads: u64) -> Result<u64, Fault> {
    let read = |key| Ok(keys.number(key)?.map(u64::from));
    let product = |factors: &[u64]| {
        factors
            .iter()
            .fold(1u64, |product, &factor| product.saturating_mul(factor))
    };
    let embedding = u64::from(keys.required("embedding_length")?);
    if let Some(head) = read("wkv.head_size")? {
        let shifts = read("token_shift_count")?.unwrap_or(2);
        return Ok(product(&[shifts, embedding]).saturating_add(product(&[embedding, head])));
    }
    if let Some(cells) = read("shortconv.l_cache")? {
        return Ok(product(&[embedding, cells.saturating_sub(1)]));
    }
    let kernel = read("ssm.conv_kernel")?.unwrap_or(0);
    if let Some(head) = read("kda.head_dim")? {
        let kept = if kernel > 0 { kernel - 1 } else { 3 };
        return Ok(product(&[3, kept, heads, head]).saturating_add(product(&[head, head, heads])));
    }
    let inner = read("ssm.inner_size")?.unwrap_or(0);
    let state = read("ssm.state_size")?.unwrap_or(0);
    let groups = read("ssm.group_count")?.unwrap_or(0);
    let channels = inner.saturating_add(product(&[2, groups, state]));
    Ok(product(&[kernel.saturating_sub(1), channels]).saturating_add(product(&[state, inner])))
}

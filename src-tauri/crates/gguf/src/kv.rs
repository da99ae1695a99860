//! What one sequence costs: which layers keep keys and values, for how many tokens, and which keep a state.
//!
//! As llama.cpp allocates it: `llama-model.cpp` (`load_hparams`, `create_memory`), `llama-hparams.cpp`
//! (`n_embd_k_gqa`, `has_kv`), and `load_arch_hparams` of each architecture under `models/`.

mod recurrent;
mod sliding;

use crate::{fault::Fault, keys::HeaderKeys};
use tierbar_core::model::KvAccount;

/// `layers_all` counts the blocks of the file, of which the last, beyond `layers`, keep nothing unless the engine is asked
/// to use them for prediction.
pub(crate) fn account_kv(
    keys: &HeaderKeys,
    layers_all: u32,
    layers: u32,
) -> Result<KvAccount, Fault> {
    if without_cache(keys.architecture) {
        return Ok(KvAccount::default());
    }
    let heads = keys
        .per_layer("attention.head_count", layers_all)?
        .unwrap_or_else(|| vec![0; layers_all as usize]);
    let kv_heads = keys
        .per_layer("attention.head_count_kv", layers_all)?
        .unwrap_or_else(|| heads.clone());
    let recurrent = recurrent::layers(keys, layers_all, layers, &kv_heads)?;
    let (window, sliding) = sliding::layers(keys, layers, &recurrent)?;
    let head = HeadSize::from_keys(keys, heads[0])?;
    let owners = cache_owners(keys, layers_all)?.min(layers);
    // Sparse attention finds its tokens by keys of its own, of one head; some layers may borrow another's.
    let indexer = keys.number("attention.indexer.key_length")?.unwrap_or(0);

    let mut account = KvAccount {
        state_bytes: recurrent::state_bytes(keys, &recurrent, heads[0])?,
        ..KvAccount::default()
    };
    for layer in 0..owners as usize {
        if recurrent[layer].without_attention() {
            continue;
        }
        let elements = u64::from(kv_heads[layer]).saturating_mul(head.elements(sliding[layer]));
        let elements = elements.saturating_add(indexer.into());
        let sum = if sliding[layer] {
            account.window = window;
            &mut account.sliding_elements_per_cell
        } else {
            &mut account.full_elements_per_token
        };
        *sum = sum.saturating_add(elements);
    }
    Ok(account)
}

/// Encoders and diffusion models read a text whole, with nothing kept.
fn without_cache(architecture: &str) -> bool {
    matches!(
        architecture,
        "bert"
            | "clef"
            | "dream"
            | "eurobert"
            | "gemma-embedding"
            | "jina-bert-v2"
            | "jina-bert-v3"
            | "llada"
            | "llada-moe"
            | "modern-bert"
            | "neo-bert"
            | "nomic-bert"
            | "nomic-bert-moe"
            | "rnd1"
            | "wavtokenizer-dec"
    )
}

/// Elements of one head's key and value, in full and in sliding layers.
#[derive(Default)]
struct HeadSize {
    full: [u32; 2],
    sliding: [u32; 2],
}

impl HeadSize {
    fn from_keys(keys: &HeaderKeys, heads: u32) -> Result<Self, Fault> {
        // Without heads, there is no attention.
        if heads == 0 {
            return Ok(Self::default());
        }
        let even = keys.required("embedding_length")? / heads;
        let key = keys.number("attention.key_length")?.unwrap_or(even);
        let value = keys.number("attention.value_length")?.unwrap_or(even);
        let key_swa = keys.number("attention.key_length_swa")?.unwrap_or(key);
        let value_swa = keys.number("attention.value_length_swa")?.unwrap_or(value);
        // Multi-head latent attention derives the values from the cached latent keys.
        let latent = keys.number("attention.key_length_mla")?.unwrap_or(0) > 0;
        let value_cached = |value| if latent { 0 } else { value };
        Ok(Self {
            full: [key, value_cached(value)],
            sliding: [key_swa, value_cached(value_swa)],
        })
    }

    fn elements(&self, sliding: bool) -> u64 {
        let [key, value] = if sliding { self.sliding } else { self.full };
        u64::from(key) + u64::from(value)
    }
}

/// How many of the first layers own a cache; the layers behind them read an owner's.
fn cache_owners(keys: &HeaderKeys, layers_all: u32) -> Result<u32, Fault> {
    Ok(match keys.architecture {
        "gemma3n" => 20,
        "gemma4" => {
            layers_all.saturating_sub(keys.number("attention.shared_kv_layers")?.unwrap_or(0))
        }
        _ => layers_all,
    })
}
